// SPDX-License-Identifier: Apache-2.0
//
// Twenty small kernels whose hardware counts are known (counters_test.cpp).
// microkernels.ptx is made of this by
//   clang++-19 -x cuda -nocudainc -nocudalib --cuda-device-only -S -O2 --cuda-gpu-arch=sm_90 -Xclang
//     -target-sdk-version=12.3 -Xclang -target-feature -Xclang +ptx80 -fno-unroll-loops microkernels.cu -o microkernels.ptx
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __device__ __attribute__((device))
#define K extern "C" __global__ void
#define tidx __nvvm_read_ptx_sreg_tid_x()
#define bidx __nvvm_read_ptx_sreg_ctaid_x()
#define I (bidx * __nvvm_read_ptx_sreg_ntid_x() + tidx)
#define sync() __syncthreads()
typedef unsigned char uint8_t;
typedef float float4 __attribute__((ext_vector_type(4)));

K copy_f32(const float* a, float* b) { b[I] = a[I]; }
K copy_f64(const double* a, double* b) { b[I] = a[I]; }
K copy_f128(const float4* a, float4* b) { b[I] = a[I]; }
K copy_u8(const uint8_t* a, uint8_t* b) { b[I] = a[I]; }
K load_stride2(const float* a, float* b) { b[I] = a[2 * I]; }
K load_stride32(const float* a, float* b) { b[I] = a[32 * I]; }
K load_misaligned1(const float* a, float* b) { b[I] = a[I + 1]; }
K load_broadcast(const float* a, float* b) { b[I] = a[bidx]; }
K store_stride4(const float* a, float* b) { b[4 * I] = a[I]; }
K shared_free(const float* a, float* b) { __shared__ float s[256]; s[tidx] = a[I]; sync(); b[I] = s[(tidx + 1) & 255]; }
K shared_2way(const float* a, float* b) { __shared__ float s[512]; s[2 * tidx] = a[I]; sync(); b[I] = s[(2 * tidx + 2) & 511]; }
K shared_32way(const float* a, float* b) { __shared__ float s[8192]; s[32 * tidx] = a[I]; sync(); b[I] = s[(32 * tidx + 32) & 8191]; }
K shared_broadcast(const float* a, float* b) { __shared__ float s[256]; s[tidx] = a[I]; sync(); b[I] = s[tidx >> 5]; }
K branch_uniform(const float* a, float* b) {
  float x = a[I];
  if (bidx & 1) {
    for (int i = 0; i < 8; i++) x = __nvvm_sin_approx_f(x);
  }
  b[I] = x;
}
K branch_divergent(const float* a, float* b) {
  float x = a[I];
  if (tidx & 1) {
    for (int i = 0; i < x; i++) b[I + i] = x;
  } else {
    for (int i = 0; i < x + 1; i++) b[I + 2 * i] = x;
  }
}
K atomic_same(int* c, int* r) { r[I] = __nvvm_atom_add_gen_i(c, 1); }
K red_same(int* c) { __nvvm_atom_add_gen_i(c, 1); }
K shared_atomic_same(int* r) {
  __shared__ int s;
  if (!tidx) s = 0;
  sync();
  __nvvm_atom_add_gen_i(&s, (int)tidx);
  sync();
  r[I] = s;
}
K local_array(const int* a, int* b) {
  int v[32];
  for (int i = 0; i < 32; i++) v[i] = i * a[I];
  int s = 0;
  for (int i = 0; i < 32; i++) s += v[a[(I + i) & 1023] & 31];
  b[I] = s;
}
K shuffle_sum(const float* a, float* b) {
  float x = a[I];
  for (int d = 16; d; d >>= 1) x += __nvvm_shfl_sync_bfly_f32(~0u, x, d, 31);
  if (!(tidx & 31)) b[I >> 5] = x;
}
