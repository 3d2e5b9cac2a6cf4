// SPDX-License-Identifier: Apache-2.0
//
// Textures and surfaces: the objects that kernels name by a 64-bit handle, and
// the run-time side of the instructions that read and write them.
//
// What the CUDA programming guide leaves open is as on the hardware: filter
// weights have 8 bits, coordinates that are not numbers are 0, a texture in
// linear memory reads 0 beyond its end.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "softgpu/jit/compiler.h"

namespace sonde::softgpu::exec {

enum class TexelFormat : uint8_t { u8, s8, u16, s16, u32, s32, f16, f32 };
// The driver's numbers (CUaddress_mode).
enum class TextureAddress : uint8_t { wrap, clamp, mirror, border };

// One level of an array, or linear memory. Addresses are the device's; sizes
// are elements, pitches bytes. Slices: depth, layers, or faces of cubes.
struct TextureLevel {
  uint64_t address = 0, pitch = 0, slicePitch = 0;
  uint32_t width = 1, height = 1, slices = 1;
};

struct TextureDescriptor {
  static constexpr unsigned kMaxLevels = 17;
  std::array<TextureLevel, kMaxLevels> levels;
  uint32_t levelCount = 1;
  TexelFormat format = TexelFormat::f32;
  uint8_t channels = 1;
  bool linearMemory = false;  // no array: reads beyond the end give 0
  bool surface = false;
  bool filter = false;  // linear, else nearest
  bool levelFilter = false;
  bool normalizedCoordinates = false;
  bool normalizedRead = false;  // 8- and 16-bit integers read as [0, 1] or [-1, 1]
  bool srgb = false;
  std::array<TextureAddress, 3> address{TextureAddress::clamp, TextureAddress::clamp, TextureAddress::clamp};
  std::array<float, 4> border{};
  float levelBias = 0, minLevel = 0, maxLevel = 0;
};

// Handles are never 0 and not used again soon. Any thread.
uint64_t publishTexture(const TextureDescriptor& descriptor);  // 0: the table is full
// No kernel may still use it. false: no such texture.
bool retireTexture(uint64_t handle);

// An instruction, as the compiler describes it to the helper (part of kAbiVersion).
enum class TextureOp : uint8_t { sample, gather, load, store, query };
enum class TextureShape : uint8_t { d1, d2, d3, layered1, layered2, cube, layeredCube };
enum class TextureLod : uint8_t { none, level, gradient };
enum class SurfaceBounds : uint8_t { trap, clamp, zero };
enum class TextureQuery : uint8_t { width, height, depth, channels, layers, levels, normalized };
struct TextureJob {
  TextureOp op = TextureOp::sample;
  TextureShape shape = TextureShape::d2;
  TextureLod lod = TextureLod::none;
  SurfaceBounds bounds = SurfaceBounds::trap;
  TextureQuery query = TextureQuery::width;
  uint8_t integerCoordinates = 0;
  uint8_t component = 0;                   // gather
  uint8_t elementBytes = 4, elements = 4;  // load, store
  bool counts = false;                     // sample, gather: counting variant with memory requests
};

// Rows of 32 lanes in the buffer of inputs, in 32-bit words: four coordinates,
// then the level or the two gradients.
inline constexpr unsigned kTextureLodRow = 4, kTextureGradientRows = 4;

std::span<const jit::RuntimeSymbol> textureHelpers();  // "sonde_texture", "sonde_surface"

}  // namespace sonde::softgpu::exec
