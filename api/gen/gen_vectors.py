#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/softgpu/vector_types.h and vector_functions.h: 1 to 4 elements of each arithmetic type."""
from tables import cBanner

GENERATOR = "gen_vectors.py"
# name, element type, size in bytes
SCALARS = [("char", "signed char", 1), ("uchar", "unsigned char", 1), ("short", "short", 2), ("ushort", "unsigned short", 2),
           ("int", "int", 4), ("uint", "unsigned int", 4), ("long", "long int", 8), ("ulong", "unsigned long int", 8),
           ("longlong", "long long int", 8), ("ulonglong", "unsigned long long int", 8), ("float", "float", 4), ("double", "double", 8)]
NAMES = "xyzw"


def vectors():
    """(name, element type, count, alignment or 0)"""
    for name, scalar, size in SCALARS:
        for count in (1, 2, 3, 4):
            aligned = min(16, size * count) if count in (2, 4) else 0
            yield name + str(count), scalar, count, aligned
            if count == 4 and size == 8:
                yield name + "4_16a", scalar, 4, 16
                yield name + "4_32a", scalar, 4, 32


def generate():
    out = [cBanner(GENERATOR, "The vector types of CUDA, and dim3. Their alignment is part of the ABI: a vector of two or four\n"
                   "elements is aligned to its size, to 16 bytes at most; the suffix _32a means 32."),
           '#ifndef __VECTOR_TYPES_H__\n#define __VECTOR_TYPES_H__\n\n#include "crt/host_defines.h"\n\n']
    for name, scalar, count, aligned in vectors():
        out.append("struct __device_builtin__ %s%s {\n  %s %s;\n};\n" % ("__builtin_align__(%d) " % aligned if aligned else "", name, scalar, ", ".join(NAMES[:count])))
    out.append("\n")
    for name, _, _, _ in vectors():
        out.append("typedef struct %s %s;\n" % (name, name))
    out.append("""
/** The size of a grid or a block; what is not given is 1. */
struct __device_builtin__ dim3 {
  unsigned int x, y, z;
#if defined(__cplusplus)
#if __cplusplus >= 201103L
  __host__ __device__ constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
#else
  __host__ __device__ dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  __host__ __device__ dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
#endif
#endif
};
typedef struct dim3 dim3;

#endif /* __VECTOR_TYPES_H__ */
""")
    types = "".join(out)
    out = [cBanner(GENERATOR, "make_<vector>(x, …): a vector of the given elements."),
           '#ifndef __VECTOR_FUNCTIONS_H__\n#define __VECTOR_FUNCTIONS_H__\n\n#include "vector_types.h"\n\n']
    for name, scalar, count, _ in vectors():
        params = ", ".join("%s %s" % (scalar, n) for n in NAMES[:count])
        out.append("static __inline__ __host__ __device__ %s make_%s(%s) {\n  %s v;\n  %s\n  return v;\n}\n" %
                   (name, name, params, name, " ".join("v.%s = %s;" % (n, n) for n in NAMES[:count])))
    out.append("\n#endif /* __VECTOR_FUNCTIONS_H__ */\n")
    return {"include/softgpu/vector_types.h": types, "include/softgpu/vector_functions.h": "".join(out)}
