// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through the C++ interface, and packed half arithmetic.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// c = a * b, n x n, one warp for each 16 x 16 tile; tiles pass through shared memory.
extern "C" __global__ void product(const half* a, const half* b, float* c, int n) {
  __shared__ half tileA[16 * 16], tileB[16 * 16];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (int k = 0; k < n; k += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) {
      tileA[i] = a[(row + i / 16) * n + k + i % 16];
      tileB[i] = b[(k + i % 16) * n + column + i / 16];
    }
    __syncthreads();
    wmma::load_matrix_sync(fa, tileA, 16);
    wmma::load_matrix_sync(fb, tileB, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncthreads();
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
  wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}

extern "C" __global__ void halves(const half2* a, const half2* b, half2* sum, __nv_bfloat162* product, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  sum[i] = __hfma2(a[i], b[i], __hmax2(a[i], b[i]));
  product[i] = __hmul2(__float22bfloat162_rn(__half22float2(a[i])), __float22bfloat162_rn(__half22float2(b[i])));
}
