#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples' own options: --help, what they refuse, broken input files; each with its message.

usage: arguments.py FOLDER_OF_PROGRAMS
"""
import os
import subprocess
import sys
import tempfile

FILES = {
    "skew.mtx": b"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 1 5\n",
    "cut.mtx": b"%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 2\n2 2 2\n",
    "outside.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n",
    "indefinite.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 -1\n2 1 -1\n",
    "small.mtx": b"%%MatrixMarket matrix coordinate real symmetric\n% 2 unknowns\n2 2 3\n1 1 4\n2 1 1\n2 2 3\n",
    "comments.ppm": b"P6\n# by hand\n2 2 # width, height\n255\n0123456789ab",
    "cut.ppm": b"P6 2 2 255\n0123",
    "deep.ppm": b"P6 2 2 65535\n" + bytes(24),
    "empty.ppm": b"P6 0 2 255\n",
    "picture.png": b"\x89PNG\r\n\x1a\n",
}

# Program, arguments, exit status, what stdout and stderr say together.
CASES = [
    ("matmul", ["--help"], 0, "usage: matmul [--m ROWS] [--n COLUMNS]"),
    ("matmul", ["big"], 2, "matmul: there is no option 'big'"),
    ("matmul", ["--m", "1", "--rows", "2"], 2, "there is no option '--rows'"),
    ("matmul", ["--m"], 2, "a value must follow --m"),
    ("matmul", ["--m", "1x"], 2, "--m wants a whole number from 1 to 32768, not '1x'"),
    ("matmul", ["--n", "99999999999"], 2, "--n wants a whole number from 1 to 32768"),
    ("matmul", ["--m", "1", "--n", "1", "--k", "1"], 0, "1 x 1 x 1"),
    ("reduction", ["--n", "0"], 2, "--n wants a whole number from 1 to"),
    ("reduction", ["--n", "1"], 0, "1 elements"),
    ("streams_overlap", ["--streams", "3", "--pieces", "7", "--n", "1000"], 0, "1000 elements in 7 pieces on 3 streams"),
    ("histogram", ["-h"], 0, "usage: histogram [--n BYTES]"),
    ("nbody", ["--n", "33", "--steps", "1"], 0, "33 bodies, 1 steps"),
    ("radix_sort", ["--n", "1"], 0, "1 keys"),
    ("vector_add_driver", ["--n", "nothing"], 2, "usage: "),
    ("conjugate_gradient", ["--matrix", "small.mtx"], 0, "2 unknowns, 4 non-zeros: 2 iterations,"),
    ("conjugate_gradient", ["--iterations", "1"], 1, "1 iterations were not enough"),
    ("conjugate_gradient", ["--matrix", "none.mtx"], 2, "cannot open none.mtx"),
    ("conjugate_gradient", ["--matrix", "skew.mtx"], 2, "skew.mtx: not a square real coordinate matrix"),
    ("conjugate_gradient", ["--matrix", "cut.mtx"], 2, "cut.mtx: entry 3 of 4 is missing or out of range"),
    ("conjugate_gradient", ["--matrix", "outside.mtx"], 2, "entry 1 of 1 is missing or out of range"),
    ("conjugate_gradient", ["--matrix", "indefinite.mtx"], 2, "the matrix is not positive definite"),
    ("image_filter", ["--in", "comments.ppm", "--out", "edges.ppm"], 0, "2 x 2 pixels"),
    ("image_filter", ["--in", "edges.ppm"], 0, "2 x 2 pixels"),
    ("image_filter", ["--in", "cut.ppm"], 2, "cut.ppm ends before its last pixel"),
    ("image_filter", ["--in", "deep.ppm"], 2, "deep.ppm has not 8 bits a colour"),
    ("image_filter", ["--in", "empty.ppm"], 2, "empty.ppm has no width and height"),
    ("image_filter", ["--in", "picture.png"], 2, "picture.png is no binary PPM"),
    ("image_filter", ["--in", "none.ppm"], 2, "none.ppm cannot be opened"),
    ("image_filter", ["--out", "no/folder.ppm"], 2, "cannot write no/folder.ppm"),
]


def main():
    programs, failures = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory(prefix="sonde-arguments-") as folder:
        for name, content in FILES.items():
            with open(os.path.join(folder, name), "wb") as out:
                out.write(content)
        for program, arguments, status, said in CASES:
            done = subprocess.run([os.path.join(programs, program), *arguments], cwd=folder, capture_output=True,
                                  text=True, check=False)
            text = done.stdout + done.stderr
            if done.returncode != status or said not in text:
                failures += 1
                print(f"{program} {' '.join(arguments)}: status {done.returncode}, not {status}, or lacks '{said}':\n{text}")
    print(f"{len(CASES)} calls, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
