// SPDX-License-Identifier: Apache-2.0
//
// Memory, events and pools shared with another process: this program again,
// which gets the handles in its environment.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "gpu.h"
#include "ptx.h"

extern char** environ;

namespace {

template <class T>
std::string hex(const T& value) {
  static const char* digits = "0123456789abcdef";
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  std::string text;
  for (unsigned char b : bytes) text += {digits[b >> 4], digits[b & 15]};
  return text;
}

template <class T>
T fromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  T value{};
  auto* bytes = reinterpret_cast<unsigned char*>(&value);
  for (size_t i = 0; text && i < sizeof(T); i++)
    bytes[i] = static_cast<unsigned char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  return value;
}

class IpcTest : public Gpu {
 protected:
  // Runs one of the tests below in a process of its own.
  pid_t start(const std::string& test) {
    const std::string filter = "--gtest_filter=IpcChild.DISABLED_" + test;
    const char* arguments[] = {"driver_test", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
    return child;
  }
  void finish(pid_t child) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the other process failed";
  }
  unsigned word(CUdeviceptr at) {
    unsigned value = 0;
    EXPECT_EQ(nameOf(cuMemcpyDtoH(&value, at, 4)), "CUDA_SUCCESS");
    return value;
  }
};
using IpcChild = IpcTest;

TEST_F(IpcTest, MemoryAndEventOfAnotherProcess) {
  CUdeviceptr before, memory;
  OK(cuMemAlloc(&before, 100));
  OK(cuMemAlloc(&memory, 10000));
  OK(cuMemsetD32(memory, 17, 2500));
  CUipcMemHandle handle, again;
  OK(cuIpcGetMemHandle(&handle, memory));
  OK(cuIpcGetMemHandle(&again, memory + 8));  // the same allocation
  EXPECT_EQ(hex(handle), hex(again));
  EXPECT_EQ(word(memory + 9996), 17u);  // as before
  CUevent event;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));  // it has no time
  OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  CUipcEventHandle eventHandle;
  OK(cuIpcGetEventHandle(&eventHandle, event));
  OK(cuEventQuery(event));  // never recorded

  // The other process must wait for this record before it reads.
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Gate gate;
  OK(gate.hold(stream));
  OK(cuMemsetD32Async(memory, 18, 1, stream));
  OK(cuEventRecord(event, stream));
  FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  setenv("IPC_MEMORY", hex(handle).c_str(), 1);
  setenv("IPC_EVENT", hex(eventHandle).c_str(), 1);
  const pid_t child = start("MemoryAndEvent");
  gate.open();
  finish(child);
  OK(cuEventSynchronize(event));  // the other process's record is the last
  EXPECT_EQ(word(memory), 19u);
  EXPECT_EQ(word(memory + 9996), 21u);
  OK(cuEventDestroy(event));
  OK(cuMemFree(memory));
  OK(cuMemFree(before));
}

TEST_F(IpcChild, DISABLED_MemoryAndEvent) {
  const auto handle = fromEnvironment<CUipcMemHandle>("IPC_MEMORY");
  CUdeviceptr memory = 0, again = 0;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&memory, handle, 0));
  OK(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT_EQ(again, memory);
  size_t bytes = 0;
  OK(cuMemGetAddressRange(nullptr, &bytes, memory));
  EXPECT_EQ(bytes, 10000u);
  CUevent event;
  OK(cuIpcOpenEventHandle(&event, fromEnvironment<CUipcEventHandle>("IPC_EVENT")));
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuStreamWaitEvent(stream, event, 0));
  unsigned first = 0;
  OK(cuMemcpyDtoHAsync(&first, memory, 4, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_EQ(first, 18u);  // the other process's set came before its record
  CUmodule module;
  CUfunction store;
  OK(cuModuleLoadData(&module, kSmall));
  OK(cuModuleGetFunction(&store, module, "store"));
  unsigned value = 21;
  CUdeviceptr target = memory + 9996;
  void* params[] = {&target, &value};
  OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  OK(cuMemsetD32Async(memory, 19, 1, stream));
  OK(cuEventRecord(event, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuEventQuery(event));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));  // not this process's
  OK(cuIpcCloseMemHandle(memory));
  OK(cuMemcpyDtoH(&first, memory, 4));  // opened twice
  EXPECT_EQ(first, 19u);
  OK(cuIpcCloseMemHandle(memory));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&first, memory, 4));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(memory));
  OK(cuEventDestroy(event));
}

TEST_F(IpcTest, WrongHandlesAreErrors) {
  CUdeviceptr memory, opened;
  OK(cuMemAlloc(&memory, 4096));
  CUipcMemHandle handle;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(nullptr, memory));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, memory + 4096));
  void* pinned;
  OK(cuMemAllocHost(&pinned, 64));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned)));
  OK(cuMemFreeHost(pinned));
  OK(cuIpcGetMemHandle(&handle, memory));
  // In the process that has the memory a handle cannot be opened.
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CUipcMemHandle nothing{};
  FAILS(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&opened, nothing, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CUipcEventHandle eventHandle;
  CUevent event;
  OK(cuEventCreate(&event, 0));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&eventHandle, event));
  OK(cuEventDestroy(event));
  OK(cuMemFree(memory));
  // The memory is gone: another process is told so.
  setenv("IPC_MEMORY", hex(handle).c_str(), 1);
  finish(start("Gone"));
}

TEST_F(IpcChild, DISABLED_Gone) {
  CUdeviceptr memory;
  FAILS(CUDA_ERROR_MAP_FAILED,
        cuIpcOpenMemHandle(&memory, fromEnvironment<CUipcMemHandle>("IPC_MEMORY"), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

TEST_F(IpcTest, PoolOfAnotherProcess) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool plain, pool;
  OK(cuMemPoolCreate(&plain, &props));
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  OK(cuMemPoolCreate(&pool, &props));
  int fd = -1;
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuMemPoolExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUdeviceptr memory, other;
  OK(cuMemAllocFromPoolAsync(&memory, 1000, pool, nullptr));
  OK(cuMemAllocFromPoolAsync(&other, 1000, plain, nullptr));
  CUmemPoolPtrExportData data;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, other));
  OK(cuMemPoolExportPointer(&data, memory));
  OK(cuMemsetD32(memory, 5, 250));
  OK(cuCtxSynchronize());         // a set does not wait for itself
  const int inherited = dup(fd);  // without close-on-exec
  setenv("IPC_POOL", std::to_string(inherited).c_str(), 1);
  setenv("IPC_POINTER", hex(data).c_str(), 1);
  finish(start("Pool"));
  close(inherited);
  close(fd);
  EXPECT_EQ(word(memory), 6u);
  EXPECT_EQ(word(memory + 4), 5u);
  OK(cuMemFree(memory));
  OK(cuMemFree(other));
  OK(cuMemPoolDestroy(plain));
  OK(cuMemPoolDestroy(pool));
}

TEST_F(IpcChild, DISABLED_Pool) {
  CUmemoryPool pool;
  void* fd = reinterpret_cast<void*>(static_cast<intptr_t>(std::atoi(std::getenv("IPC_POOL"))));
  OK(cuMemPoolImportFromShareableHandle(&pool, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUdeviceptr memory = 0;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&memory, 100, pool, nullptr));
  auto data = fromEnvironment<CUmemPoolPtrExportData>("IPC_POINTER");
  OK(cuMemPoolImportPointer(&memory, pool, &data));
  EXPECT_EQ(word(memory + 996), 5u);
  OK(cuMemsetD32(memory, 6, 1));
  OK(cuMemFreeAsync(memory, nullptr));
  OK(cuCtxSynchronize());
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(memory, 6, 1));
  OK(cuMemPoolDestroy(pool));
}

TEST_F(IpcTest, MappedMemoryOfAnotherProcess) {
  CUmemAllocationProp props{};
  props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  constexpr size_t size = 2 << 20;
  CUmemGenericAllocationHandle memory, imported;
  int fd = -1;
  OK(cuMemCreate(&memory, size, &props, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemRelease(memory));
  props.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  OK(cuMemCreate(&memory, size, &props, 0));
  OK(cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUdeviceptr range;
  OK(cuMemAddressReserve(&range, 2 * size, 0, 0, 0));
  // Importing works in the same process too: the same memory twice.
  OK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  OK(cuMemMap(range, size, 0, memory, 0));
  OK(cuMemMap(range + size, size, 0, imported, 0));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cuMemSetAccess(range, 2 * size, &access, 1));
  OK(cuMemsetD32(range, 3, 1));
  EXPECT_EQ(word(range + size), 3u);
  const int inherited = dup(fd);
  setenv("IPC_MAPPED", std::to_string(inherited).c_str(), 1);
  finish(start("Mapped"));
  EXPECT_EQ(word(range), 4u);
  close(inherited);
  close(fd);
  FAILS(CUDA_ERROR_INVALID_VALUE,  // not a file of ours
        cuMemImportFromShareableHandle(&imported, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  OK(cuMemUnmap(range, 2 * size));
  OK(cuMemAddressFree(range, 2 * size));
  OK(cuMemRelease(memory));
  OK(cuMemRelease(imported));
}

TEST_F(IpcChild, DISABLED_Mapped) {
  constexpr size_t size = 2 << 20;
  CUmemGenericAllocationHandle memory;
  void* fd = reinterpret_cast<void*>(static_cast<intptr_t>(std::atoi(std::getenv("IPC_MAPPED"))));
  OK(cuMemImportFromShareableHandle(&memory, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CUmemAllocationProp props{};
  OK(cuMemGetAllocationPropertiesFromHandle(&props, memory));
  EXPECT_EQ(props.location.id, 0);
  CUdeviceptr range;
  OK(cuMemAddressReserve(&range, size, 0, 0, 0));
  OK(cuMemMap(range, size, 0, memory, 0));
  OK(cuMemRelease(memory));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cuMemSetAccess(range, size, &access, 1));
  EXPECT_EQ(word(range), 3u);
  OK(cuMemsetD32(range, 4, 1));
  OK(cuMemUnmap(range, size));
}

}  // namespace
