// SPDX-License-Identifier: Apache-2.0
#include "softgpu/nvrtc/vendor_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sonde::vendor {

namespace {

// Whether `path` is a library other than this one.
bool candidate(const std::string& path) {
  Dl_info self{};
  struct stat there{}, mine{};
  if (stat(path.c_str(), &there) != 0) return false;
  if (!dladdr(reinterpret_cast<void*>(&candidate), &self) || stat(self.dli_fname, &mine) != 0) return true;
  return there.st_dev != mine.st_dev || there.st_ino != mine.st_ino;
}

void addDirectories(std::vector<std::string>& out, const char* list) {
  const std::string directories = list ? list : "";
  for (size_t at = 0; at <= directories.size();) {
    const size_t end = std::min(directories.find(':', at), directories.size());
    if (end > at) out.push_back(directories.substr(at, end - at));
    at = end + 1;
  }
}

// Wheels install into …/site-packages/nvidia/.
void addWheels(std::vector<std::string>& out) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        const std::string path = info->dlpi_name ? info->dlpi_name : "";
        for (const char* folder : {"/site-packages/", "/dist-packages/"}) {
          const size_t at = path.find(folder);
          if (at == std::string::npos) continue;
          const std::string root = path.substr(0, at) + folder + "nvidia/";
          auto& list = *static_cast<std::vector<std::string>*>(to);
          if (std::find(list.begin(), list.end(), root + "cu13/lib") == list.end())
            for (const char* place : {"cu13/lib", "cuda_nvrtc/lib", "nvjitlink/lib"}) list.push_back(root + place);
        }
        return 0;
      },
      &out);
}

}  // namespace

void* open(const char* file, const char* variable, const char* advice) {
  std::vector<std::string> places;
  if (const char* named = std::getenv(variable)) {
    places.emplace_back(named);
  } else {
    std::vector<std::string> directories;
    addDirectories(directories, std::getenv("LD_LIBRARY_PATH"));
    addWheels(directories);
    for (const char* root : {std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH")})
      if (root) directories.push_back(std::string(root) + "/lib64");
    addDirectories(directories, "/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib64");
    for (const std::string& directory : directories) places.push_back(directory + "/" + file);
  }
  for (const std::string& place : places)
    if (candidate(place))
      if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  std::fprintf(stderr, "sonde: the vendor's %s was not found; name it in %s%s\n", file, variable, advice);
  return nullptr;
}

std::string virtualArchitecture(std::string_view name) {
  return name.substr(0, 3) == "sm_" ? "compute_" + std::string(name.substr(3)) : std::string(name);
}

}  // namespace sonde::vendor
