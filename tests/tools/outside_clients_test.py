#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/outside-clients believes of what clients say."""
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "outside"))
import client_build  # noqa: E402
import client_suites  # noqa: E402
import small_suites  # noqa: E402
from client_build import Check, Failed, Skipped  # noqa: E402


def fails(action, *arguments):
    try:
        action(*arguments)
    except Failed as why:
        return why.reason
    return None


class Checks(unittest.TestCase):
    def testValues(self):
        self.assertEqual(client_suites.expect({"a": 1, "b": 2}, {"a": 1}, ""), "a 1, b 2")
        self.assertEqual(fails(client_suites.expect, {"a": 1}, {"a": 2}, ""), "a: 1, not 2")
        self.assertEqual(fails(client_suites.expect, {}, {"a": 2}, ""), "a: None, not 2")

    def testCaliper(self):
        records = client_suites.caliperRecords("cupti.activity.kind=kernel,region=first,name=f(int\\,int)\nx=1\n")
        self.assertEqual(records[0]["region"], "first")
        self.assertEqual(records[0]["name"], "f(int\\,int)")
        self.assertEqual(records[1], {"x": "1"})

    def testChrome(self):
        def event(cat, name, correlation, ts, **args):
            return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": 2, "args": dict(args, correlation=correlation)}

        def trace(**changed):
            kernel = event("kernel", "_Z6addOnePj", 3, 12, grid=[4, 1, 1], block=[64, 1, 1])
            up = event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 4, 20, bytes=1024)
            kernel.update(changed)
            with open(path, "w", encoding="utf-8") as out:
                json.dump({"traceEvents": [
                    event("cuda_runtime", "cudaLaunchKernel", 3, 10), event("cuda_runtime", "cudaMemcpy", 4, 19), kernel,
                    up, dict(up, name="Memcpy DtoH (Device -> Pageable)"), {"ph": "s", "cat": "kernel"}, {"ph": "M"}]}, out)
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "t.json")
            trace()
            self.assertEqual(client_suites.chromeEvents(path), {"kernel": 1, "gpu_memcpy": 2, "cuda_runtime": 2})
            trace(ts=9)
            self.assertIn("before its call", fails(client_suites.chromeEvents, path))
            trace(name="other")
            self.assertIn("grid", fails(client_suites.chromeEvents, path))
            trace(dur=0)
            self.assertIn("duration", fails(client_suites.chromeEvents, path))

    def testInstructionCounts(self):
        record = {"correlationId": 1, "executed": 8, "threadsExecuted": 256, "pcOffset": 16}
        text = json.dumps({"invocations": [{"correlation_id": 1}], "records": [record]})
        self.assertIsNone(small_suites.instructionCounts(text, 1, 8, 256))
        self.assertIsNotNone(small_suites.instructionCounts(text, 2, 8, 256))
        self.assertIsNotNone(small_suites.instructionCounts(text, 1, 8, 255))

    def testSamples(self):
        self.assertIsNone(small_suites.sampleUnified("kind=BYTES_TRANSFER_HTOD value=65536\nkind=BYTES_TRANSFER_DTOH value=65536"))
        self.assertIsNotNone(small_suites.sampleUnified("kind=BYTES_TRANSFER_HTOD value=4096"))
        self.assertIsNotNone(small_suites.sampleTrace("nothing"))
        self.assertIsNotNone(small_suites.sampleMetric("Metric ipc = 1"))

    def testPapi(self):
        self.assertIsNone(client_suites.papiResult("values\n\x1b[1;32mPASSED\x1b[0m\n"))
        self.assertIsNotNone(fails(client_suites.papiResult, "\x1b[1;31mFAILED!!!\x1b[0m\n"))
        self.assertIsNotNone(fails(client_suites.papiResult, "nothing\n"))
        with self.assertRaises(Skipped):
            client_suites.papiResult("only for others\nSKIPPED\n")

    def testResultsMustBeRight(self):
        self.assertIsNone(client_suites.expectRight("results: right\n"))
        self.assertIsNotNone(fails(client_suites.expectRight, "results: wrong\n"))


class Steps(unittest.TestCase):
    def testOutcomes(self):
        def raising(error):
            def action():
                raise error
            return action
        self.assertEqual(Check("a", lambda: "found").evaluate().note, "found")
        row = Check("a", raising(Failed("exit status 1", "fine\nx.c:1: error: no\n", "no build"))).evaluate()
        self.assertEqual((row.result, row.note), ("no build", "x.c:1: error: no"))
        self.assertEqual(Check("a", raising(Failed("bad"))).evaluate().result, "FAIL")
        self.assertEqual(Check("a", raising(Skipped("why"))).evaluate().result, "skipped")

    def testPrograms(self):
        class Arguments:
            client, checkout, prefix, timeout = "x", "/nowhere", "/nowhere", 5
        with tempfile.TemporaryDirectory() as place:
            Arguments.work = place
            bench = client_build.Bench(Arguments)
            self.assertEqual(bench.run(["sh", "-c", "echo $LD_LIBRARY_PATH $A"], A="1").strip(),
                             "/nowhere/lib64/softgpu:/nowhere/lib64:%s/x/nvml 1" % place)
            self.assertEqual(fails(bench.run, ["false"]), "exit status 1")
            self.assertEqual(fails(bench.run, ["sh", "-c", "kill -9 $$"]), "killed by signal 9")
            Arguments.timeout = 0.2
            self.assertIn("still running", fails(bench.run, ["sleep", "5"]))


if __name__ == "__main__":
    unittest.main()
