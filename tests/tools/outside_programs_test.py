#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/outside-programs reads from a checkout, and whom it believes."""
import os
import struct
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "outside"))
import build  # noqa: E402
import ptx_cases  # noqa: E402
import suites  # noqa: E402


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


class Literals(unittest.TestCase):
    def testArrays(self):
        self.assertEqual(ptx_cases.array("[1u8, -1, 3]"), ("u8", b"\x01\xff\x03"))
        self.assertEqual(ptx_cases.array("[0x1_0u16; 2]"), ("u16", b"\x10\x00\x10\x00"))
        self.assertEqual(ptx_cases.array("[-2i32]"), ("i32", b"\xfe\xff\xff\xff"))
        self.assertEqual(ptx_cases.array("[1.5, 2f32]"), ("f32", struct.pack("<ff", 1.5, 2)))
        self.assertEqual(ptx_cases.array("[f32::from_bits(0x3f800000)]"), ("f32", struct.pack("<f", 1)))
        self.assertEqual(ptx_cases.array("[u64::max_value(), 1]")[1], b"\xff" * 8 + struct.pack("<Q", 1))
        self.assertEqual(ptx_cases.array("[half::f16::from_f32(1.0)]"), ("f16", b"\x00\x3c"))
        with self.assertRaises(ValueError):
            ptx_cases.array("[something()]")

    def testCases(self):
        with tempfile.TemporaryDirectory() as place:
            write(os.path.join(place, "ptx/src/test/spirv_run/mod.rs"),
                  "test_ptx!(one, [1u8], [2u8]);\n// test_ptx!(two, [1u8], [2u8]);\ntest_ptx!(three);\n"
                  "test_ptx_warp!(four, [\n  1u8,\n]);\n")
            cases = list(ptx_cases.zluda(place, "80"))
            self.assertEqual([(c.name, c.threads) for c in cases], [("one", 1), ("four", 64)])


class Checks(unittest.TestCase):
    def testSamples(self):
        self.assertIsNone(suites.sampleCheck(0, "Test PASSED\n"))
        self.assertEqual(suites.sampleCheck(2, ""), "waived")
        self.assertEqual(suites.sampleCheck(-11, ""), "killed by signal 11")
        self.assertIn("FAIL", suites.sampleCheck(0, "Result = FAIL\n"))

    def testPolybench(self):
        line = "Non-Matching CPU-GPU Outputs Beyond Error Threshold of 0.05 Percent: %d\n"
        self.assertIsNone(suites.polybenchCheck(0, line % 0))
        self.assertIsNotNone(suites.polybenchCheck(0, line % 3))
        self.assertIsNotNone(suites.polybenchCheck(0, ""))
        self.assertIsNone(suites.polybenchCheck(0, "Number of misses: 0\n"))

    def testReference(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "a.reference_output")
            write(path, "Success!\nexit 0\n")
            check = suites.llvmCheck(path)
            self.assertIsNone(check(0, "sonde: an assertion failed: …\nSuccess!\n"))
            self.assertIsNotNone(check(1, "Success!\n"))
            self.assertIsNotNone(check(0, "Success?\n"))
            self.assertIsNotNone(check(0, "sonde: library refused\nSuccess!\n"))

    def testFirstError(self):
        self.assertEqual(build.firstError("fine\n0 errors\na.cu(3): error:   no\n", "x"), "a.cu(3): error: no")
        self.assertEqual(build.firstError("fine\n", "exit status 1"), "exit status 1")


class Samples(unittest.TestCase):
    def testProgram(self):
        with tempfile.TemporaryDirectory() as place:
            sample = os.path.join(place, "Samples/0_Introduction/a")
            write(os.path.join(sample, "CMakeLists.txt"), "add_executable(a a.cu b.cpp)\n"
                  "target_link_libraries(a PUBLIC CUDA::cuda_driver)\n"
                  "set(CUDA_FATBIN_FILE \"${CMAKE_CURRENT_BINARY_DIR}/k64.fatbin\")\n"
                  "set(CUDA_KERNEL_SOURCE \"${CMAKE_CURRENT_SOURCE_DIR}/k.cu\")\n")
            write(os.path.join(place, "Samples/0_Introduction/g/CMakeLists.txt"), "find_package(OpenGL)\n${OPENGL_LIBRARIES}")
            write(os.path.join(place, "test_args.json"), '{"a": {"runs": [{"args": ["-x"]}, {"args": ["-y"]}]}}')
            a, g = list(suites.cudaSamples(place, "80"))
            self.assertEqual(a.sources, [os.path.join(sample, "a.cu"), os.path.join(sample, "b.cpp")])
            self.assertIn("-lcuda", a.flags)
            self.assertEqual(a.extras, [(os.path.join(sample, "k.cu"), "k64.fatbin", "-fatbin")])
            self.assertEqual(a.runs, [["-x"], ["-y"]])
            self.assertEqual(g.skip, "needs graphics")


if __name__ == "__main__":
    unittest.main()
