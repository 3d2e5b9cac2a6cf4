# SPDX-License-Identifier: Apache-2.0
"""A CuPy program for `sonde run`: arithmetic, a reduction, a kernel of its own, two streams, a graph."""
import cupy as cp

scale = cp.RawKernel(
    r"""extern "C" __global__ void scale(float* x, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}""",
    "scale",
)
x = cp.arange(1 << 20, dtype=cp.float32)
y = cp.sqrt(x) + 1
for _ in range(10):
    scale((4096,), (256,), (x, cp.float32(1.01), x.size))
stream = cp.cuda.Stream(non_blocking=True)
with stream:
    z = y * 2
    stream.begin_capture()
    for _ in range(4):
        scale((4096,), (256,), (z, cp.float32(0.5), z.size))
    graph = stream.end_capture()
    for _ in range(3):
        graph.launch()
stream.synchronize()
print(float(cp.sum(y)), float(z[1]))
