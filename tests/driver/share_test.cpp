// SPDX-License-Identifier: Apache-2.0
//
// Memory without an address: several handles, and another process.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "gpu.h"

namespace {

constexpr size_t kSize = 2 << 20;

CUmemAllocationProp shareable() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

CUresult mapAt(CUdeviceptr range, CUmemGenericAllocationHandle memory) {
  if (const CUresult e = cuMemMap(range, kSize, 0, memory, 0)) return e;
  CUmemAccessDesc d{};
  d.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(range, kSize, &d, 1);
}

// One descriptor over a socket, as programs hand it on.
void sendDescriptor(int socket, int fd) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  if (sendmsg(socket, &m, 0) != 1) std::abort();
}
int receiveDescriptor(int socket) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  iovec data{&byte, 1};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  int fd = -1;
  if (recvmsg(socket, &m, 0) == 1) std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

// The other process: increments the first word of what it is given.
int increment(int socket) {
  const int fd = receiveDescriptor(socket);
  CUcontext context;
  CUmemGenericAllocationHandle memory;
  CUdeviceptr range;
  unsigned value = 0;
  if (cuInit(0) || createContext(&context, 0, 0)) return 1;
  if (cuMemImportFromShareableHandle(&memory, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
    return 2;
  close(fd);
  CUmemAllocationProp p{};
  if (cuMemGetAllocationPropertiesFromHandle(&p, memory) || p.location.id != 0) return 3;
  if (cuMemAddressReserve(&range, kSize, 0, 0, 0) || mapAt(range, memory)) return 4;
  if (cuMemcpyDtoH(&value, range, 4)) return 5;
  value++;
  if (cuMemcpyHtoD(range, &value, 4) || cuCtxSynchronize()) return 6;
  return 0;
}

// Before the parent starts the driver: a child of a forked driver has none.
TEST(ShareTest, AnotherProcessMapsTheSameMemory) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  const pid_t child = fork();
  if (child == 0) _exit(increment(sockets[1]));
  OK(cuInit(0));
  CUcontext context;
  OK(createContext(&context, 0, 0));
  CUmemGenericAllocationHandle memory;
  CUdeviceptr range;
  const CUmemAllocationProp p = shareable();
  OK(cuMemCreate(&memory, kSize, &p, 0));
  OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  OK(mapAt(range, memory));
  unsigned value = 41;
  OK(cuMemcpyHtoD(range, &value, 4));
  OK(cuCtxSynchronize());
  int fd = -1;
  OK(cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  sendDescriptor(sockets[0], fd);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  OK(cuMemcpyDtoH(&value, range, 4));
  EXPECT_EQ(value, 42u);
  close(fd);
  OK(cuMemUnmap(range, kSize));
  OK(cuMemRelease(memory));
  OK(cuMemAddressFree(range, kSize));
  OK(cuCtxDestroy(context));
}

class HandleTest : public Gpu {};

TEST_F(HandleTest, HandlesAreCounted) {
  size_t before, now, total;
  OK(cuMemGetInfo(&before, &total));
  CUmemGenericAllocationHandle memory, again;
  CUdeviceptr range;
  const CUmemAllocationProp p = shareable();
  OK(cuMemCreate(&memory, kSize, &p, 0));
  OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  OK(mapAt(range, memory));
  OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 4096)));
  EXPECT_EQ(again, memory);
  // Importing in the same process gives the same memory.
  int fd;
  OK(cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_EQ(again, memory);
  OK(cuMemRelease(memory));
  OK(cuMemRelease(memory));
  CUmemAllocationProp asked;
  OK(cuMemGetAllocationPropertiesFromHandle(&asked, memory));
  EXPECT_EQ(asked.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  OK(cuMemRelease(memory));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(memory));
  // What is mapped gets a handle again.
  OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  OK(cuMemRelease(again));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + kSize)));
  OK(cuMemGetInfo(&now, &total));
  EXPECT_EQ(before - now, kSize);
  OK(cuMemUnmap(range, kSize));
  OK(cuMemGetInfo(&now, &total));
  EXPECT_EQ(before, now);
  // The file lives on in the descriptor.
  OK(cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  OK(cuMemRelease(again));
  close(fd);
  OK(cuMemAddressFree(range, kSize));
}

TEST_F(HandleTest, OnlyWhatWasMadeForItIsShared) {
  CUmemGenericAllocationHandle memory;
  CUmemAllocationProp p = shareable();
  int fd = -7;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  OK(cuMemCreate(&memory, kSize, &p, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  EXPECT_EQ(fd, -7);
  OK(cuMemRelease(memory));
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&memory, kSize, &p, 0));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuMemImportFromShareableHandle(&memory, reinterpret_cast<void*>(static_cast<intptr_t>(ends[0])),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&memory, reinterpret_cast<void*>(intptr_t{-1}),
                                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(ends[0]);
  close(ends[1]);
  int can = 0;
  OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device_));
  EXPECT_EQ(can, 1);
}

TEST_F(HandleTest, PoolsByLocation) {
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool byDevice, byPlace, mine, current;
  OK(cuDeviceGetDefaultMemPool(&byDevice, device_));
  OK(cuMemGetDefaultMemPool(&byPlace, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(byDevice, byPlace);
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = here;
  OK(cuMemPoolCreate(&mine, &props));
  OK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
  OK(cuMemGetMemPool(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(current, mine);
  OK(cuDeviceGetMemPool(&current, device_));
  EXPECT_EQ(current, mine);
  OK(cuMemPoolDestroy(mine));
  OK(cuMemGetMemPool(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(current, byDevice);
  CUmemLocation nowhere{CU_MEM_LOCATION_TYPE_DEVICE, {99}};
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuMemGetDefaultMemPool(&current, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&current, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED));
}

// Pools of the host's memory and of managed memory: what they give, to whom it is open, and the limit.
TEST_F(HandleTest, PoolsOfTheHostAndManaged) {
  CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, {0}}, node{CU_MEM_LOCATION_TYPE_HOST_NUMA, {0}},
      here{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, none{CU_MEM_LOCATION_TYPE_NONE, {0}},
      noNode{CU_MEM_LOCATION_TYPE_HOST_NUMA, {4095}};
  struct Case {
    CUmemAllocationType type;
    CUmemLocation location;
    bool managed;
  };
  const Case cases[] = {{CU_MEM_ALLOCATION_TYPE_PINNED, host, false},
                        {CU_MEM_ALLOCATION_TYPE_PINNED, node, false},
                        {CU_MEM_ALLOCATION_TYPE_MANAGED, here, true},
                        {CU_MEM_ALLOCATION_TYPE_MANAGED, host, true},
                        {CU_MEM_ALLOCATION_TYPE_MANAGED, none, true}};
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (const Case& c : cases) {
    CUmemPoolProps props{};
    props.allocType = c.type;
    props.location = c.location;
    props.maxSize = 1 << 20;
    CUmemoryPool pool, found;
    OK(cuMemPoolCreate(&pool, &props));
    CUdeviceptr p, more;
    OK(cuMemAllocFromPoolAsync(&p, 1 << 19, pool, stream));
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&more, (1 << 19) + 1, pool, stream));
    cuuint64_t used = 0;
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(used, cuuint64_t{1} << 19);
    unsigned managed = 2, kind = 0;
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    EXPECT_EQ(managed, c.managed ? 1u : 0u);
    OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    EXPECT_EQ(found, pool);
    OK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    if (!c.managed) EXPECT_EQ(kind, unsigned{CU_MEMORYTYPE_HOST});
    // Both sides reach it.
    OK(cuMemsetD8Async(p, 0x5a, 1 << 19, stream));
    OK(cuStreamSynchronize(stream));
    auto* bytes = reinterpret_cast<unsigned char*>(p);
    EXPECT_EQ(bytes[0], 0x5a);
    EXPECT_EQ(bytes[(1 << 19) - 1], 0x5a);
    CUmemAccess_flags flags;
    OK(cuMemPoolGetAccess(&flags, pool, &host));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolGetAccess(&flags, pool, &here));
    EXPECT_EQ(flags, c.managed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const CUmemAccessDesc open{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemPoolSetAccess(pool, &open, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &here));
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(bytes));
    OK(cuMemFreeAsync(p, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(used, 0u);
    OK(cuMemAllocFromPoolAsync(&p, 100, pool, stream));
    OK(cuMemFree(p));
    // Defaults, and the one that is current at a location.
    CUmemLocation location = c.location;
    CUmemoryPool standard, current;
    OK(cuMemGetDefaultMemPool(&standard, &location, c.type));
    OK(cuMemGetMemPool(&current, &location, c.type));
    EXPECT_EQ(current, standard);
    EXPECT_NE(current, pool);
    OK(cuMemSetMemPool(&location, c.type, pool));
    OK(cuMemGetMemPool(&current, &location, c.type));
    EXPECT_EQ(current, pool);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(device_, pool));
    OK(cuMemPoolDestroy(pool));
    OK(cuMemGetMemPool(&current, &location, c.type));
    EXPECT_EQ(current, standard);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard));
  }
  CUmemPoolProps props{};
  CUmemoryPool pool;
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = noNode;
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuMemPoolCreate(&pool, &props));
  props.location = none;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
  props.location = host;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &props));
  int can = 0;
  OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, device_));
  EXPECT_EQ(can, 1);
  OK(cuStreamDestroy(stream));
}

}  // namespace
