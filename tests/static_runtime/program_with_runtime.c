/* SPDX-License-Identifier: Apache-2.0
 *
 * A program as nvcc links it, in small: functions of the runtime's names in the
 * executable itself, one of them too short for a long jump, and the section of
 * device code. Its runtime answers 77 to everything.
 */
#include <stddef.h>
#include <stdio.h>

/* What a compiler knows the answer of is answered at once, called or not: GCC 14
 * finds out even that nobody writes a volatile variable of this file. */
volatile int no_device = 77;
#if __has_attribute(noipa)
#define RUNTIME __attribute__((noipa))
#else
#define RUNTIME __attribute__((noinline))
#endif

__attribute__((section(".nvFatBinSegment"), used)) static int segment[6] = {0x466243b1, 1};

RUNTIME int cudaMalloc(void** pointer, size_t bytes) {
  volatile size_t sum = bytes;
  for (int i = 0; i < 8; ++i) sum = sum * 3 + (size_t)pointer;
  return no_device;
}
RUNTIME int cudaMemset(void* pointer, int value, size_t bytes) {
  volatile size_t sum = bytes;
  for (int i = 0; i < 8; ++i) sum = sum * 3 + (size_t)pointer + (size_t)value;
  return no_device;
}
RUNTIME int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  volatile size_t sum = bytes;
  for (int i = 0; i < 8; ++i) sum = sum * 3 + (size_t)to + (size_t)from + (size_t)kind;
  return no_device;
}
int cudaGetDeviceCount(int* count);
#ifdef HIDE
#define HIDDEN ".hidden cudaGetDeviceCount\n"
#else
#define HIDDEN ""
#endif
__asm__(".text\n.globl cudaGetDeviceCount\n" HIDDEN
        ".type cudaGetDeviceCount, @function\n"
        "cudaGetDeviceCount: mov $77, %eax\n ret\n.size cudaGetDeviceCount, .-cudaGetDeviceCount\n");
RUNTIME void** __cudaRegisterFatBinary(void* binary) {
  volatile size_t sum = (size_t)binary;
  return (void**)sum;
}
/* Not the runtime's, whatever its name looks like. */
RUNTIME int cudaOfTheApplication(void) {
  volatile int answer = 42;
  return answer;
}

/* As a shared object it is what a constructor finds out that counts: code is registered by those. */
static int found = -1;
__attribute__((constructor)) static void first(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == 0) found = count;
}

#ifdef AS_LIBRARY
__attribute__((visibility("default"))) int runAll(void) {
  printf("constructor %d\n", found > 0);
#else
int main(void) {
#endif
  void* pointer = NULL;
  unsigned char bytes[4] = {0, 0, 0, 0};
  int count = 0;
  printf("malloc %d\n", cudaMalloc(&pointer, 4));
  if (pointer) printf("memset %d\n", cudaMemset(pointer, 9, 4));
  if (pointer) printf("memcpy %d\n", cudaMemcpy(bytes, pointer, 4, 2));
  printf("byte %d\n", bytes[3]);
  printf("count %d", cudaGetDeviceCount(&count));
  printf(" %d\n", count > 0);
  printf("own %d\n", cudaOfTheApplication());
  return 0;
}
