/* SPDX-License-Identifier: Apache-2.0
 *
 * A program and a library that it is linked with, each with a runtime inside:
 * an error that one meets is not the other's.
 */
#include <stdio.h>

#if __has_attribute(noipa)
#define RUNTIME __attribute__((noipa))
#else
#define RUNTIME __attribute__((noinline))
#endif

volatile int no_device = 77;
__attribute__((section(".nvFatBinSegment"), used)) static int segment[6] = {0x466243b1, 1};

RUNTIME int cudaSetDevice(int device) {
  volatile int sum = device;
  for (int i = 0; i < 8; ++i) sum = sum * 3 + device;
  return no_device;
}
RUNTIME int cudaPeekAtLastError(void) {
  volatile int sum = 0;
  for (int i = 0; i < 8; ++i) sum = sum * 3 + i;
  return no_device + sum - sum;
}
RUNTIME int cudaGetLastError(void) {
  volatile int sum = 1;
  for (int i = 0; i < 8; ++i) sum = sum * 3 + i;
  return no_device + sum - sum;
}
RUNTIME void** __cudaRegisterFatBinary(void* binary) {
  volatile size_t sum = (size_t)binary;
  return (void**)sum;
}

#ifdef AS_LIBRARY
__attribute__((visibility("default"))) int failInLibrary(void) { return cudaSetDevice(99); }
__attribute__((visibility("default"))) int lastOfLibrary(void) { return cudaGetLastError(); }
#else
int failInLibrary(void);
int lastOfLibrary(void);
int main(void) {
  printf("%d", failInLibrary());
  printf(" %d", cudaPeekAtLastError());
  printf(" %d", cudaSetDevice(-1));
  printf(" %d", lastOfLibrary());
  printf(" %d", lastOfLibrary());
  printf(" %d", cudaGetLastError());
  printf(" %d\n", cudaGetLastError());
  return 0;
}
#endif
