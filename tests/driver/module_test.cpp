// SPDX-License-Identifier: Apache-2.0
//
// Images: PTX text, fat binaries in every compression, refusals with reasons.
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <fstream>

#include "gpu.h"
#include "ptx.h"

namespace {

using ModuleTest = Gpu;

struct EntrySpec {
  uint16_t kind;
  uint32_t target;
  std::string payload;
  enum { raw, lz4, zstd } compression = raw;
};

// A fat binary as compilers write it.
std::string fatbin(const std::vector<EntrySpec>& entries) {
  std::string body;
  auto put = [&](auto value) { body.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const auto& e : entries) {
    std::string bytes = e.payload;
    uint64_t flags = 0x11;
    if (e.compression == EntrySpec::lz4) {
      bytes.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(e.payload.size()))));
      bytes.resize(static_cast<size_t>(LZ4_compress_default(
          e.payload.data(), bytes.data(), static_cast<int>(e.payload.size()), static_cast<int>(bytes.size()))));
      flags |= 0x2000;
    } else if (e.compression == EntrySpec::zstd) {
      bytes.resize(ZSTD_compressBound(e.payload.size()));
      bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), e.payload.data(), e.payload.size(), 3));
      flags |= 0x8000;
    }
    const uint64_t padded = (bytes.size() + 7) / 8 * 8;
    put(e.kind);
    put(uint16_t{0x0101});
    put(uint32_t{64});
    put(padded);
    put(static_cast<uint32_t>(e.compression == EntrySpec::raw ? 0 : bytes.size()));
    put(uint32_t{0});
    put(uint16_t{0});
    put(uint16_t{8});
    put(e.target);
    put(uint32_t{0});
    put(uint32_t{0});
    put(flags);
    put(uint64_t{0});
    put(static_cast<uint64_t>(e.payload.size()));
    body += bytes + std::string(padded - bytes.size(), '\0');
  }
  std::string out;
  auto head = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  head(uint32_t{0xba55ed50});
  head(uint16_t{1});
  head(uint16_t{16});
  head(static_cast<uint64_t>(body.size()));
  return out + body;
}

struct Wrapper {
  uint32_t magic = 0x466243b1, version = 1;
  const void* data = nullptr;
  const void* list = nullptr;
};

std::string named(const std::string& name, const std::string& target) {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n.visible .entry " + name + "()\n{\n  ret;\n}\n";
}

bool has(CUmodule m, const char* name) {
  CUfunction f;
  return cuModuleGetFunction(&f, m, name) == CUDA_SUCCESS;
}

TEST_F(ModuleTest, EveryCompression) {
  for (auto compression : {EntrySpec::raw, EntrySpec::lz4, EntrySpec::zstd}) {
    const std::string image = fatbin({{2, 90, "machine code"}, {1, 80, kSmall, compression}});
    CUmodule m;
    OK(cuModuleLoadData(&m, image.data()));
    EXPECT_TRUE(has(m, "store")) << compression;
    OK(cuModuleUnload(m));
    Wrapper w;
    w.data = image.data();
    OK(cuModuleLoadFatBinary(&m, &w));
    EXPECT_TRUE(has(m, "empty"));
    OK(cuModuleUnload(m));
  }
}

TEST_F(ModuleTest, BestTargetThatTheDeviceCanRun) {
  const std::string image = fatbin({{1, 70, named("old", "sm_70")},
                                    {1, 90, named("right", "sm_90")},
                                    {1, 100, named("future", "sm_100")},
                                    {1, 80, named("middle", "sm_80")}});
  CUmodule m;
  OK(cuModuleLoadData(&m, image.data()));
  EXPECT_TRUE(has(m, "right"));
  EXPECT_FALSE(has(m, "old"));
  EXPECT_FALSE(has(m, "future"));
}

TEST_F(ModuleTest, OnlyMachineCodeNamesTheFlag) {
  const std::string image = fatbin({{2, 90, "machine code"}});
  CUmodule m;
  char log[1000] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadDataEx(&m, image.data(), 2, options, values));
  EXPECT_NE(std::string(log).find("code=compute_90"), std::string::npos) << log;
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log) + 1);
  FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m,
                                                       "\x7f"
                                                       "ELF and more"));
}

TEST_F(ModuleTest, TooNewTarget) {
  CUmodule m;
  FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, fatbin({{1, 120, named("f", "sm_120")}}).data()));
  const CUresult r = cuModuleLoadData(&m, named("f", "sm_120").c_str());
  EXPECT_TRUE(r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_INVALID_PTX) << nameOf(r);
}

// Libraries have machine code for the devices of their day and PTX for the newest alone.
TEST_F(ModuleTest, PtxForNewerDevicesStandsInForMachineCode) {
  const std::string image = fatbin({{2, 80, "machine code"},
                                    {2, 90, "machine code"},
                                    {1, 120, named("later", "sm_120")},
                                    {1, 100, named("next", "sm_100"), EntrySpec::zstd}});
  CUmodule m;
  OK(cuModuleLoadData(&m, image.data()));
  EXPECT_FALSE(has(m, "later"));
  CUfunction f;
  OK(cuModuleGetFunction(&f, m, "next"));
  int target = 0;
  OK(cuFuncGetAttribute(&target, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
  EXPECT_EQ(target, 100);
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuCtxSynchronize());
  // Machine code for other devices does not make it a program for this one.
  const std::string other = fatbin({{2, 80, "machine code"}, {2, 100, "machine code"}, {1, 120, named("f", "sm_120")}});
  FAILS(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, other.data()));
}

// What nvcc 11 links into programs with -rdc=true: a device runtime upon functions that only the vendor's driver has.
TEST_F(ModuleTest, TheDeviceRuntimeOfCuda11IsLeftOut) {
  const std::string runtime = fatbin(
      {{1, 80,
        ".version 7.8\n.target sm_80\n.address_size 64\n"
        ".extern .func (.param .b32 r) cnpSetLastError(.param .b32 e);\n"
        ".visible .func (.param .b32 r) cudaMemcpyAsync(.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d, "
        ".param .b64 e)\n{\n  .reg .b32 %r;\n  { .param .b32 x; .param .b32 y; st.param.b32 [x], 1; "
        "call.uni (y), cnpSetLastError, (x); ld.param.b32 %r, [y]; }\n  st.param.b32 [r], %r;\n  ret;\n}\n"}});
  const std::string program = fatbin({{1, 80, named("mine", "sm_80")}});
  const void* parts[] = {program.data(), runtime.data(), nullptr};
  Wrapper w;
  w.version = 2;
  w.data = parts[0];
  w.list = parts;
  CUmodule m;
  OK(cuModuleLoadFatBinary(&m, &w));
  EXPECT_TRUE(has(m, "mine"));
  // Alone it is a program like any, which asks for what is not there.
  FAILS(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, cuModuleLoadData(&m, runtime.data()));
}

TEST_F(ModuleTest, DamagedFatBinaries) {
  std::string image = fatbin({{1, 80, kSmall, EntrySpec::zstd}});
  CUmodule m;
  std::string bad = image;
  bad[16 + 64 + 6] = static_cast<char>(bad[16 + 64 + 6] ^ 0x5a);
  FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, bad.data()));
  bad = image;
  bad[16 + 4] = 1;  // header length
  FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, bad.data()));
  bad = image;
  bad[16 + 12] = 0x7f;  // payload length beyond the end
  FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, bad.data()));
  FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, "what is this"));
  FAILS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&m, ""));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&m, nullptr));
}

TEST_F(ModuleTest, SyntaxErrorHasAPlace) {
  CUmodule m;
  char log[2000] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  FAILS(CUDA_ERROR_INVALID_PTX,
        cuModuleLoadDataEx(
            &m, ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry f()\n{\n  frobnicate.u32 %r1;\n}\n", 2,
            options, values));
  EXPECT_NE(std::string(log).find("line 6"), std::string::npos) << log;
}

TEST_F(ModuleTest, FromAFile) {
  const std::string path = ::testing::TempDir() + "/sonde_module_test.ptx";
  std::ofstream(path) << kSmall;
  CUmodule m;
  OK(cuModuleLoad(&m, path.c_str()));
  EXPECT_TRUE(has(m, "store"));
  std::remove(path.c_str());
  FAILS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, path.c_str()));
}

TEST_F(ModuleTest, UnloadedModuleIsGone) {
  CUmodule m;
  CUfunction f;
  OK(cuModuleLoadData(&m, kSmall));
  OK(cuModuleGetFunction(&f, m, "empty"));
  FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, m, "missing"));
  OK(cuModuleUnload(m));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(m));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

TEST_F(ModuleTest, LinkTwoTexts) {
  const std::string caller = R"(
.version 8.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 x);
.visible .entry run(.param .u64 p)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  .param .b32 arg;
  .param .b32 res;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 21;
  st.param.b32 [arg], %r1;
  call (res), twice, (arg);
  ld.param.b32 %r2, [res];
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
  const std::string callee = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .func (.param .b32 r) twice(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.s32 %r2, %r1, %r1;
  st.param.b32 [r], %r2;
  ret;
}
)";
  CUlinkState link;
  OK(cuLinkCreate(0, nullptr, nullptr, &link));
  OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(caller.c_str()), caller.size() + 1, "caller", 0, nullptr,
                   nullptr));
  OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(callee.c_str()), callee.size() + 1, "callee", 0, nullptr,
                   nullptr));
  void* image;
  size_t bytes;
  OK(cuLinkComplete(link, &image, &bytes));
  CUmodule m;
  OK(cuModuleLoadData(&m, image));
  OK(cuLinkDestroy(link));
  CUfunction f;
  OK(cuModuleGetFunction(&f, m, "run"));
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4));
  void* params[] = {&p};
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  unsigned out;
  OK(cuMemcpyDtoH(&out, p, 4));
  EXPECT_EQ(out, 42u);
}

}  // namespace
