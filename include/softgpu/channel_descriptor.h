/* SPDX-License-Identifier: Apache-2.0
 *
 * cudaCreateChannelDesc<T>(): the texture format of an element type. Defined
 * for the arithmetic types and their vectors of 1, 2 and 4 elements; for any
 * other T the kind is cudaChannelFormatKindNone.
 */
#ifndef __CHANNEL_DESCRIPTOR_H__
#define __CHANNEL_DESCRIPTOR_H__

#if defined(__cplusplus)

#include "cuda_runtime_api.h"

namespace sonde_detail {

// Bits per component and number of components of T; kind None by default.
template <class T>
struct ChannelOf {
  static constexpr int kBits = 0, kCount = 0;
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindNone;
};

#define SONDE_CHANNEL(type, scalar, count, kind)                                       \
  template <>                                                                          \
  struct ChannelOf<type> {                                                             \
    static constexpr int kBits = static_cast<int>(sizeof(scalar) * 8), kCount = count; \
    static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKind##kind;        \
  };
#define SONDE_CHANNEL_VECTORS(name, scalar, kind) \
  SONDE_CHANNEL(scalar, scalar, 1, kind)          \
  SONDE_CHANNEL(name##1, scalar, 1, kind)         \
  SONDE_CHANNEL(name##2, scalar, 2, kind)         \
  SONDE_CHANNEL(name##4, scalar, 4, kind)
SONDE_CHANNEL_VECTORS(char, signed char, Signed)
SONDE_CHANNEL_VECTORS(uchar, unsigned char, Unsigned)
SONDE_CHANNEL_VECTORS(short, short, Signed)
SONDE_CHANNEL_VECTORS(ushort, unsigned short, Unsigned)
SONDE_CHANNEL_VECTORS(int, int, Signed)
SONDE_CHANNEL_VECTORS(uint, unsigned int, Unsigned)
SONDE_CHANNEL_VECTORS(float, float, Float)
#if defined(__CHAR_UNSIGNED__)
SONDE_CHANNEL(char, char, 1, Unsigned)
#else
SONDE_CHANNEL(char, char, 1, Signed)
#endif
#undef SONDE_CHANNEL_VECTORS
#undef SONDE_CHANNEL

inline cudaChannelFormatDesc channelDesc(int bits, int count, cudaChannelFormatKind kind) {
  cudaChannelFormatDesc desc = {count > 0 ? bits : 0, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0,
                                kind};
  return desc;
}

}  // namespace sonde_detail

template <class T>
inline __host__ cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Channel = sonde_detail::ChannelOf<T>;
  return sonde_detail::channelDesc(Channel::kBits, Channel::kCount, Channel::kKind);
}

/** Half-precision elements: one, two or four 16-bit floats. */
static inline __host__ cudaChannelFormatDesc cudaCreateChannelDescHalf() {
  return sonde_detail::channelDesc(16, 1, cudaChannelFormatKindFloat);
}
static inline __host__ cudaChannelFormatDesc cudaCreateChannelDescHalf1() { return cudaCreateChannelDescHalf(); }
static inline __host__ cudaChannelFormatDesc cudaCreateChannelDescHalf2() {
  return sonde_detail::channelDesc(16, 2, cudaChannelFormatKindFloat);
}
static inline __host__ cudaChannelFormatDesc cudaCreateChannelDescHalf4() {
  return sonde_detail::channelDesc(16, 4, cudaChannelFormatKindFloat);
}

#endif /* __cplusplus */

#endif /* __CHANNEL_DESCRIPTOR_H__ */
