// SPDX-License-Identifier: Apache-2.0
//
// Types of the first versions of functions, which cuda.h shows to nobody: sizes
// and device pointers of 32 bits.
#pragma once

#include "softgpu/driver/cuda_api.h"

using CUdeviceptr_v1 = unsigned int;

struct CUDA_MEMCPY2D_v1 {
  unsigned int srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr_v1 srcDevice;
  CUarray srcArray;
  unsigned int srcPitch;
  unsigned int dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr_v1 dstDevice;
  CUarray dstArray;
  unsigned int dstPitch;
  unsigned int WidthInBytes, Height;
};

struct CUDA_MEMCPY3D_v1 {
  unsigned int srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr_v1 srcDevice;
  CUarray srcArray;
  void* reserved0;
  unsigned int srcPitch, srcHeight;
  unsigned int dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr_v1 dstDevice;
  CUarray dstArray;
  void* reserved1;
  unsigned int dstPitch, dstHeight;
  unsigned int WidthInBytes, Height, Depth;
};

struct CUDA_ARRAY_DESCRIPTOR_v1 {
  unsigned int Width, Height;
  CUarray_format Format;
  unsigned int NumChannels;
};

struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
  unsigned int Width, Height, Depth;
  CUarray_format Format;
  unsigned int NumChannels, Flags;
};

namespace sonde::softgpu::driver {

// The answer of a function whose device pointers have 32 bits: NOT_SUPPORTED, with a word about its successor.
CUresult needs64Bits(const char* name);

}  // namespace sonde::softgpu::driver
