/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdio.h>

int main(void) {
  uint32_t cupti = 0;
  int driver = 0, runtime = 0;
  if (cuptiGetVersion(&cupti) != CUPTI_SUCCESS) return 1;
  if (cuDriverGetVersion(&driver) != CUDA_SUCCESS) return 2;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) return 3;
  printf("cupti %u, driver %d, runtime %d\n", cupti, driver, runtime);
  return 0;
}
