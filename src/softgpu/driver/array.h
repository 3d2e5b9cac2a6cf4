// SPDX-License-Identifier: Apache-2.0
//
// CUDA arrays: rows of elements in device memory that only copies and texture
// units address. Laid out row by row, slice by slice.
#pragma once

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

class Array final : public Object {
 public:
  static constexpr Type kType = Type::array;
  Array(Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, uint32_t elementBytes, uint64_t address,
        uint64_t pitch)
      : Object(kType),
        descriptor(descriptor),
        elementBytes(elementBytes),
        address(address),
        pitch(pitch),
        context_(context) {}
  ~Array() override;

  Context* context() const { return context_.get(); }
  uint64_t rows() const { return descriptor.Height ? descriptor.Height : 1; }
  uint64_t slices() const { return descriptor.Depth ? descriptor.Depth : 1; }
  uint64_t rowBytes() const { return descriptor.Width * elementBytes; }

  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const uint32_t elementBytes;
  const uint64_t address, pitch;

 private:
  Ref<Context> context_;
};

// Each level is an array of its own, half the size of the one before.
class MipmappedArray final : public Object {
 public:
  static constexpr Type kType = Type::mipmappedArray;
  MipmappedArray(Context* context, std::vector<Ref<Array>> levels)
      : Object(kType), levels(std::move(levels)), context_(context) {}

  Context* context() const { return context_.get(); }

  const std::vector<Ref<Array>> levels;

 private:
  Ref<Context> context_;
};

}  // namespace sonde::softgpu::driver
