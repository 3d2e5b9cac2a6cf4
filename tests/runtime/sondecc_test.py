#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compiler driver: its options, its outputs, its messages.

Usage: sondecc_test.py SONDECC INCLUDE_DIR LIBRARY_DIR
"""
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import sondecc_programs as programs

SONDECC, INCLUDE, LIBRARY = sys.argv[1:4]
ENVIRONMENT = dict(os.environ, SONDE_INCLUDE_DIR=INCLUDE, SONDE_LIBRARY_DIR=LIBRARY,
                   LD_LIBRARY_PATH=LIBRARY)
KERNEL = r"""
#ifndef BIAS
#define BIAS 0
#endif
__global__ void kernel(int* out) { out[threadIdx.x] = threadIdx.x + BIAS; }
int launch() {
  int* device = nullptr;
  int host[4] = {};
  if (cudaMalloc(&device, sizeof host) != cudaSuccess) return 1;
  kernel<<<1, 4>>>(device);
  if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  cudaFree(device);
  return host[3] == 3 + BIAS ? 0 : 3;
}
"""
MAIN = "int launch();\nint main() { return launch(); }\n"


class Sondecc(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.write("kernel.cu", KERNEL)
        self.write("main.cpp", MAIN)
        self.write("whole.cu", KERNEL + MAIN)

    def tearDown(self):
        self.directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def run_in(self, command, environment=ENVIRONMENT):
        return subprocess.run(command, cwd=self.directory.name, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)

    def compile(self, *options, ok=True):
        result = self.run_in([sys.executable, SONDECC, *options])
        if ok:
            self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_one_command(self):
        self.compile("whole.cu", "-o", "program")
        self.assertEqual(self.run_in([self.path("program")]).returncode, 0)

    def test_separate_objects_and_a_define(self):
        self.compile("-c", "-DBIAS=40", "kernel.cu", "-O2")
        self.compile("-c", "main.cpp", "-o", "other.o")
        self.compile("kernel.o", "other.o", "-o", "program")
        self.assertEqual(self.run_in([self.path("program")]).returncode, 0)

    def test_mixed_sources_in_one_command(self):
        self.compile("-std=c++20", "-g", "-lineinfo", "kernel.cu", "main.cpp", "-o", "program", "-lm",
                     "-Xcompiler", "-Wall,-O1", "-Xlinker", "--as-needed")
        self.assertEqual(self.run_in([self.path("program")]).returncode, 0)

    def test_integers_in_the_mathematical_functions_of_std(self):
        functions = ("acosh asinh atanh erfc expm1 ilogb lgamma llrint llround logb lrint lround nearbyint rint "
                     "trunc").split()
        calls = "\n".join("  out[%d] = std::%s(x);" % (i, f) for i, f in enumerate(functions))
        self.write("math.cu", """#include <cmath>
#include <type_traits>
__global__ void kernel(double* out, int x) {
  int quotient;
  static_assert(std::is_same<decltype(std::remquo(true, 1.0f, &quotient)), double>::value, "");
  static_assert(std::is_same<decltype(std::remquo(1.0f, 1.0f, &quotient)), float>::value, "");
%s
  out[%d] = std::remquo(x, 3.0f, &quotient) + 0 * std::scalbln(x, 2L) + 0 * std::scalbn(x, 2);
}
int main() {
  double* device = nullptr;
  double host[16] = {};
  cudaMalloc(&device, sizeof host);
  kernel<<<1, 1>>>(device, 5);
  if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  return host[%d] == 2 && host[%d] == 5 && host[%d] == -1 ? 0 : 2;
}
""" % (calls, len(functions), functions.index("ilogb"), functions.index("trunc"), len(functions)))
        self.compile("-std=c++17", "math.cu", "-o", "program")
        result = self.run_in([self.path("program")])
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_textures_and_surfaces(self):
        source = r"""
        #include <cstdio>
        __global__ void read(cudaTextureObject_t t, cudaSurfaceObject_t s, float* out) {
          out[0] = tex2D<float>(t, 1.5f, 0.5f);
          tex2D(&out[1], t, 0.5f, 1.5f);
          surf2Dwrite(42.0f, s, 4, 1);
          surf2Dwrite(7.0f, s, 400, 1, cudaBoundaryModeZero);  // outside: ignored
          out[2] = surf2Dread<float>(s, 4, 1);
          out[3] = tex2DLod<float4>(t, 0.5f, 1.5f, 0.0f).x;
          out[4] = tex2D<float4>(t, 1.5f, 0.5f).w;             // a channel that the format lacks
          out[5] = tex2Dgather<float4>(t, 1.0f, 1.0f).w;
        }
        __global__ void bytes(cudaTextureObject_t t, int* out) {
          uchar4 c = tex1Dfetch<uchar4>(t, 1);
          out[0] = c.x * 1000 + c.w;
        }
        __global__ void everyForm(cudaTextureObject_t t, cudaSurfaceObject_t s, float* out) {  // compiled only
          out[0] = tex1D<float>(t, 1) + tex3D<float>(t, 1, 2, 3) + tex1DLayered<float>(t, 1, 2) +
                   tex2DLayered<float>(t, 1, 2, 3) + texCubemap<float>(t, 1, 2, 3) +
                   texCubemapLayered<float2>(t, 1, 2, 3, 4).y + tex1DLod<int>(t, 1, 2) + tex3DLod<float>(t, 1, 2, 3, 4) +
                   tex2DGrad<float>(t, 1, 2, make_float2(1, 2), make_float2(3, 4)) + tex1DGrad<short>(t, 1, 2, 3);
          surf1Dwrite((char)1, s, 2);
          surf1Dwrite((short)1, s, 2);
          surf2Dwrite(make_float2(1, 2), s, 8, 2);
          surf3Dwrite(make_uchar4(1, 2, 3, 4), s, 4, 2, 3);
          surf2DLayeredwrite(make_float4(1, 2, 3, 4), s, 16, 2, 3);
          surfCubemapwrite(1.0f, s, 4, 2, 5);
          out[1] = surf1Dread<unsigned char>(s, 1) + surf3Dread<int2>(s, 8, 1, 2).y;
        }
        int main() {
          cudaArray_t array;
          cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
          cudaMallocArray(&array, &format, 2, 2, cudaArraySurfaceLoadStore | cudaArrayTextureGather);
          float host[4] = {1, 2, 3, 4};
          cudaMemcpy2DToArray(array, 0, 0, host, 8, 8, 2, cudaMemcpyHostToDevice);
          cudaResourceDesc r = {};
          r.resType = cudaResourceTypeArray;
          r.res.array.array = array;
          cudaTextureDesc d = {};
          cudaTextureObject_t t, linear;
          cudaSurfaceObject_t s;
          cudaCreateTextureObject(&t, &r, &d, nullptr);
          cudaCreateSurfaceObject(&s, &r);
          float* out;
          cudaMallocManaged(&out, 64);
          read<<<1, 1>>>(t, s, out);
          uchar4* texels;
          cudaMallocManaged(&texels, 8);
          texels[1] = make_uchar4(200, 0, 0, 17);
          r = {};
          r.resType = cudaResourceTypeLinear;
          r.res.linear.devPtr = texels;
          r.res.linear.desc = cudaCreateChannelDesc<uchar4>();
          r.res.linear.sizeInBytes = 8;
          cudaCreateTextureObject(&linear, &r, &d, nullptr);
          bytes<<<1, 1>>>(linear, (int*)out + 8);
          printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
          for (int i = 0; i < 6; i++) printf(" %g", out[i]);
          printf(" %d\n", ((int*)out)[8]);
        }
        """
        self.write("textures.cu", source)
        self.compile("-arch=sm_80", "textures.cu", "-o", "textures")
        self.assertEqual(self.run_in([self.path("textures")]).stdout, "cudaSuccess 2 3 42 3 1 1 200017\n")

    def test_per_thread_default_stream(self):
        self.compile("whole.cu", "--default-stream=per-thread", "-o", "program")
        self.assertEqual(self.run_in([self.path("program")]).returncode, 0)
        symbols = self.run_in(["nm", "-D", self.path("program")]).stdout
        self.assertIn("cudaLaunchKernel_ptsz", symbols)
        self.assertIn("cudaMemcpy_ptds", symbols)

    def test_ptx_of_the_asked_architecture(self):
        self.compile("-ptx", "-arch=sm_80", "kernel.cu")
        text = self.read("kernel.ptx").decode()
        self.assertIn(".target sm_80", text)
        self.assertIn(".visible .entry _Z6kernelPi(", text)

    def test_lines_of_the_source(self):
        for options, lines in (([], False), (["-lineinfo"], True), (["-g"], True), (["-G"], True)):
            self.compile("-ptx", "-arch=sm_80", "kernel.cu", *options)
            text = self.read("kernel.ptx").decode()
            self.assertEqual(bool(re.search(r"^\s*\.loc\s+\d+ \d+", text, re.M)), lines, options)
            self.assertEqual("kernel.cu\"" in text, lines, options)

    def test_lines_of_inlined_headers_are_the_callers(self):
        self.write("inlined.cu", "__global__ void kernel(float* a) {\n"
                                 "  atomicAdd(a + threadIdx.x,\n"
                                 "            __shfl_xor_sync(~0u, rsqrtf(*a), 1));\n"
                                 "  __syncthreads();\n}\n")
        self.compile("-ptx", "-lineinfo", "inlined.cu", "-o", "inlined.ptx")
        ptx = self.read("inlined.ptx").decode()
        self.assertEqual([os.path.basename(f) for f in re.findall(r'^\s*\.file\s+\d+\s+"([^"]*)"', ptx, re.M)],
                         ["inlined.cu"])
        self.assertLessEqual({line for line in re.findall(r"\.loc\s+1\s+(\d+)", ptx)}, set("012345"))

    def test_launches_in_device_code(self):
        self.write("launch.cu", r"""
#include <cstdio>
struct Pair { char c; double d; };
__global__ void note(char a, short b, Pair pair, int* out) { out[blockIdx.x] = a + b + pair.c + int(pair.d); }
namespace inner { template <class T> __global__ void fill(T* out, T value) { out[threadIdx.x] = value; } }
template <class T> __device__ void launchFill(T* out, T value) {
  // A comment with <<<1>>>, and "<<<" in a text.
  const char* text = "k<<<1, 1>>>(x)";
  inner::fill<T><<<1,
                   dim3(4)>>>(out, text[0] == 'k' ? value : T(0));
}
__global__ void deep(int* out, int n) {
  if (n > 0) deep<<<1, 1>>>(out, n - 1);
  else atomicAdd(out, 1);
}
__global__ void parent(int* out) {
  if (threadIdx.x != 0) return;
  note<<<2, 1>>>('a', 3, Pair{1, 2.5}, out);
  launchFill(out + 4, 7);
  deep<<<1, 1>>>(out + 8, 3);
  cudaStream_t stream;
  out[9] = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  note<<<1, 1, 16, stream>>>(1, 2, Pair{3, 4}, out + 10);
  out[11] = cudaStreamDestroy(stream);
  note<<<1, 5000>>>(1, 2, Pair{3, 4}, out);
  out[12] = cudaGetLastError();
  out[13] = cudaGetLastError();
}
int main() {
  int *out, host[14];
  cudaMalloc(&out, sizeof host);
  cudaMemset(out, 0, sizeof host);
  parent<<<1, 32>>>(out);
  if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (int value : host) std::printf("%d ", value);
}
""")
        for extra in ([], ["-std=c++14"], ["-G"]):
            self.compile("-rdc=true", *extra, "launch.cu", "-o", "program")
            done = self.run_in(["./program"])
            # 97 + 3 + 1 + 2; 7 four times; one leaf; 1 + 2 + 3 + 4; cudaErrorInvalidConfiguration once.
            self.assertEqual(done.stdout.split(), "103 103 0 0 7 7 7 7 1 0 10 0 9 0".split(), done.stderr)
        # Positions stay those of the file.
        self.write("wrong.cu", "__global__ void a();\n__global__ void b() {\n  a<<<1,\n      1>>>();\n  wrong();\n}\n")
        result = self.compile("-rdc=true", "-c", "wrong.cu", ok=False)
        self.assertIn("wrong.cu:5:3: error", result.stderr)

    def test_launches_choose_among_overloads(self):
        self.write("chosen.h", programs.CHOSEN_H)
        self.write("a.cu", programs.CHOSEN_A)
        self.write("b.cu", programs.CHOSEN_B)
        self.compile("-rdc=true", "-std=c++17", "a.cu", "b.cu", "-o", "program")
        done = self.run_in(["./program"])
        # 5 * 2, 2.5 * 4, 2.5 * 8, 5 * 7; three and one of fill; the pack; 100, 200; 1 + 2 + 4 and two of four blocks.
        self.assertEqual(done.stdout.split(), "10 10 20 35 10 11 12 20 1 2 3 100 200 44 7 2000 70 71".split(),
                         done.stderr)
        self.assertEqual(done.returncode, 0)
        self.write("wrong.cu", "__global__ void a(int n);\n__global__ void a(float* p,\n                  int n = 1) {\n"
                               "  a<<<1,\n      1>>>(n);\n  wrong();\n  a<<<1, 1>>>(\"text\");\n}\n")
        result = self.compile("-rdc=true", "-c", "wrong.cu", ok=False)
        self.assertIn("wrong.cu:6:3: error", result.stderr)
        self.assertIn("wrong.cu:7:", result.stderr)

    def test_fat_binary_holds_each_architecture(self):
        self.compile("-fatbin", "-gencode", "arch=compute_75,code=sm_75", "--generate-code",
                     "arch=compute_90,code=[sm_90,compute_90]", "kernel.cu", "-o", "out.fatbin")
        data = self.read("out.fatbin")
        magic, version, header, size = struct.unpack_from("<IHHQ", data)
        self.assertEqual((magic, version, header, size), (0xBA55ED50, 1, 16, len(data) - 16))
        architectures, at = [], 16
        while at < len(data):
            kind, _, header, payload = struct.unpack_from("<HHIQ", data, at)
            architectures.append(struct.unpack_from("<I", data, at + 28)[0])
            self.assertEqual(kind, 1)
            self.assertIn(b".version 7.8", data[at + header:at + header + payload])
            at += header + payload
        self.assertEqual(architectures, [75, 90])

    def test_dependencies(self):
        self.write("part.h", "int unused;\n")
        self.write("with.cu", '#include "part.h"\n' + KERNEL)
        self.compile("-c", "with.cu", "-MD", "-MF", "with.d", "-o", "with.o")
        self.assertIn("part.h", self.read("with.d").decode())

    def test_dryrun_shows_commands_and_makes_nothing(self):
        result = self.compile("--dryrun", "whole.cu", "-o", "program")
        self.assertIn("--cuda-device-only", result.stderr)
        self.assertFalse(os.path.exists(self.path("program")))

    def test_compiler_errors_give_their_line(self):
        self.write("bad.cu", "__global__ void k() {\n  nonsense();\n}\n")
        result = self.compile("-c", "bad.cu", ok=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("bad.cu:2:3: error", result.stderr)

    def runs(self, *options):
        self.compile(*options, "-o", "program")
        result = self.run_in([self.path("program")])
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_relocatable_device_code(self):
        self.write("a.cu", programs.LINKED_A)
        self.write("b.cu", programs.LINKED_B)
        self.runs("-rdc=true", "a.cu", "b.cu")
        self.compile("-dc", "a.cu")
        self.compile("-dc", "b.cu")
        subprocess.run(["ar", "rcs", "libb.a", "b.o"], cwd=self.directory.name, check=True)
        self.runs("a.o", "libb.a")
        # A link without sondecc.
        self.compile("-dlink", "a.o", "b.o", "-o", "linked.o")
        subprocess.run(["c++", "a.o", "b.o", "linked.o", "-L" + LIBRARY, "-lcudart", "-o", "program"],
                       cwd=self.directory.name, check=True)
        self.assertEqual(self.run_in([self.path("program")]).returncode, 0)
        self.compile("-c", "kernel.cu")
        result = self.compile("-dlink", "kernel.o", ok=False)
        self.assertIn("no relocatable device code", result.stderr)

    def test_what_nvcc_takes(self):
        self.write("dialect.cu", programs.DIALECT)
        self.write("header.cuh", programs.DIALECT_HEADER)
        self.runs("-arch=sm_80", "-O2", "dialect.cu")
        # Positions are those of the file itself.
        self.write("dialect.cu", programs.DIALECT + "int broken = nothing;\n")
        result = self.compile("dialect.cu", ok=False)
        self.assertIn("dialect.cu:%d:14: error" % (programs.DIALECT.count("\n") + 1), result.stderr)

    def test_managed_variables(self):
        self.write("a.cu", programs.MANAGED_A)
        self.write("b.cu", programs.MANAGED_B)
        if not any(f.startswith("sonde-clang-managed-") for f in os.listdir(LIBRARY)):
            result = self.compile("a.cu", ok=False)
            self.assertIn("compiler plugin", result.stderr)
            self.skipTest("built without the compiler plugin")
        for level in ("-O0", "-O2"):
            with self.subTest(level):
                self.runs(level, "a.cu")
        self.runs("-rdc=true", "-DLINKED", "a.cu", "b.cu")

    def test_barriers_pipelines_and_wide_tiles(self):
        self.write("barrier.cu", programs.BARRIER)
        for arch in ("sm_80", "sm_75"):  # with and without mbarrier objects
            with self.subTest(arch):
                self.runs("-arch=" + arch, "barrier.cu")

    def test_matrix_products(self):
        self.write("mma.cu", programs.MMA)
        self.runs("-arch=sm_80", "mma.cu")

    def test_messages(self):
        for options, words in (
                ((), "no input files"),
                (("missing.cu",), "no such file"),
                (("-cudart", "static", "whole.cu"), "no static runtime"),
                (("-cubin", "kernel.cu"), "-ptx or -fatbin"),
                (("-arch=sm_banana", "kernel.cu"), "unknown architecture"),
                (("--no-such-option", "kernel.cu"), "unknown option"),
                (("file.xyz",), "what is this")):
            result = self.compile(*options, ok=False)
            self.assertEqual(result.returncode, 2, options)
            self.assertIn("sondecc: error: ", result.stderr)
            self.assertIn(words, result.stderr)

    def test_clang_that_is_not_there(self):
        environment = dict(ENVIRONMENT, SONDE_CLANG="clang-of-nowhere")
        result = self.run_in([sys.executable, SONDECC, "-c", "kernel.cu"], environment)
        self.assertEqual(result.returncode, 2)
        self.assertIn("clang-of-nowhere", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=1)
