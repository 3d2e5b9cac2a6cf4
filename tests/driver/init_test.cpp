// SPDX-License-Identifier: Apache-2.0
//
// Starting, forking and ending. Each test runs in a process of its own.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "gpu.h"

namespace {

// Runs `body` in a child; gives its exit status, or -signal.
template <class F>
int inChild(F&& body) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) body();
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(InitTest, NothingWorksBeforeInit) {
  EXPECT_EQ(inChild([] {
              int n = 0, version = 0;
              CUdeviceptr p;
              const bool ok = cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED &&
                              cuMemAlloc(&p, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                              cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 13000 &&
                              cuInit(1) == CUDA_ERROR_INVALID_VALUE && cuInit(0) == CUDA_SUCCESS &&
                              cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 1;
              _exit(ok ? 0 : 1);
            }),
            0);
}

TEST(InitTest, DevicesFromTheEnvironment) {
  EXPECT_EQ(inChild([] {
              setenv("SONDE_DEVICES", "kepler,default,hopper", 1);
              int n = 0, major = 0, minor = 0, sms = 0;
              cuInit(0);
              cuDeviceGetCount(&n);
              cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
              cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
              cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2);
              _exit(n == 3 && major == 3 && minor == 5 && sms == 132 ? 0 : 1);
            }),
            0);
}

TEST(InitTest, VisibleDevices) {
  EXPECT_EQ(inChild([] {
              setenv("SONDE_DEVICES", "kepler,hopper", 1);
              setenv("CUDA_VISIBLE_DEVICES", "1,9,0", 1);
              int n = 0, major = 0, minor = 0;
              cuInit(0);
              cuDeviceGetCount(&n);
              cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
              cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
              _exit(n == 1 && major == 9 ? 0 : 1);
            }),
            0);
  EXPECT_EQ(inChild([] {
              setenv("CUDA_VISIBLE_DEVICES", "", 1);
              _exit(cuInit(0) == CUDA_ERROR_NO_DEVICE ? 0 : 1);
            }),
            0);
}

TEST(InitTest, UnknownModelIsAnError) {
  EXPECT_EQ(inChild([] {
              setenv("SONDE_QUIET", "1", 1);
              setenv("SONDE_DEVICES", "nothing-of-that-name", 1);
              _exit(cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 0 : 1);
            }),
            0);
}

TEST(InitTest, InjectedLibraryIsCalledOnceTheDriverWorks) {
  EXPECT_EQ(inChild([] {
              setenv("CUDA_INJECTION64_PATH", INJECTION, 1);
              cuInit(0);
              const char* said = getenv("SONDE_TEST_INJECTED");
              _exit(said && std::string(said) == "yes" ? 0 : 1);
            }),
            0);
  EXPECT_EQ(inChild([] {
              setenv("SONDE_QUIET", "1", 1);
              setenv("CUDA_INJECTION64_PATH", "/no/such/library.so", 1);
              _exit(cuInit(0) == CUDA_SUCCESS ? 0 : 1);
            }),
            0);
}

TEST(InitTest, ForkedChildMustNotGoOn) {
  EXPECT_EQ(inChild([] {
              cuInit(0);
              CUcontext c;
              createContext(&c, 0, 0);
              cuStreamSynchronize(nullptr);
              const int inner = inChild([] {
                CUdeviceptr p;
                const bool ok = cuMemAlloc(&p, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                                cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                                cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
                exit(ok ? 0 : 1);
              });
              CUdeviceptr p;
              _exit(inner == 0 && cuMemAlloc(&p, 4) == CUDA_SUCCESS ? 0 : 2);
            }),
            0);
}

TEST(InitTest, ExitWithWorkInFlight) {
  for (int i = 0; i < 5; i++)
    EXPECT_EQ(inChild([] {
                cuInit(0);
                CUcontext c;
                createContext(&c, 0, 0);
                CUdeviceptr p;
                cuMemAlloc(&p, 64 << 20);
                CUstream s;
                cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
                for (int k = 0; k < 50; k++) cuMemsetD8Async(p, 1, 64 << 20, s);
                exit(7);
              }),
              7);
}

TEST(InitTest, ThreadMayEndWithItsStreamBusy) {
  EXPECT_EQ(inChild([] {
              cuInit(0);
              CUcontext c;
              createContext(&c, 0, 0);
              CUdeviceptr p;
              cuMemAlloc(&p, 20 << 20);
              for (unsigned i = 0; i < 20; i++)
                std::thread([&, i] {
                  cuCtxSetCurrent(c);
                  cuMemsetD8Async(p + (i << 20), 1, 1 << 20, CU_STREAM_PER_THREAD);
                }).join();
              _exit(cuCtxSynchronize() == CUDA_SUCCESS && cuCtxDestroy(c) == CUDA_SUCCESS ? 0 : 1);
            }),
            0);
}

TEST(InitTest, LibraryMayBeClosed) {
  EXPECT_EQ(inChild([] {
              void* library = dlopen("libcuda.so.1", RTLD_NOW);
              cuInit(0);
              CUcontext c;
              createContext(&c, 0, 0);
              CUdeviceptr p;
              cuMemAlloc(&p, 64 << 20);
              cuMemsetD8Async(p, 1, 64 << 20, nullptr);
              if (library) dlclose(library);
              _exit(cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 1);
            }),
            0);
}

}  // namespace
