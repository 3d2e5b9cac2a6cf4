/* SPDX-License-Identifier: Apache-2.0
 *
 * Texture and surface functions of kernels. A texture gives four channels as
 * float or as 32-bit integers; what of them T wants, and how wide, is decided
 * here. The coordinates of a surface's first axis count bytes.
 */
#ifndef SONDE_SOFTGPU_DEVICE_TEXTURE_H_
#define SONDE_SOFTGPU_DEVICE_TEXTURE_H_

namespace sonde_texture {

template <class Channel, int n>
struct Shape {
  typedef Channel channel;
  static const int channels = n;
};
template <class T>
struct Texel;

#define SONDE_TEXEL(type, channel, prefix)                                                             \
  template <>                                                                                          \
  struct Texel<type> : Shape<channel, 1> {                                                             \
    template <class C>                                                                                 \
    static __device__ type make(C x, C, C, C) { return static_cast<channel>(x); }                      \
  };                                                                                                   \
  SONDE_TEXEL_VECTORS(channel, prefix)
#define SONDE_TEXEL_VECTORS(channel, prefix)                                                           \
  template <>                                                                                          \
  struct Texel<prefix##1> : Shape<channel, 1> {                                                        \
    template <class C>                                                                                 \
    static __device__ prefix##1 make(C x, C, C, C) { return make_##prefix##1(static_cast<channel>(x)); } \
  };                                                                                                   \
  template <>                                                                                          \
  struct Texel<prefix##2> : Shape<channel, 2> {                                                        \
    template <class C>                                                                                 \
    static __device__ prefix##2 make(C x, C y, C, C) {                                                 \
      return make_##prefix##2(static_cast<channel>(x), static_cast<channel>(y));                       \
    }                                                                                                  \
  };                                                                                                   \
  template <>                                                                                          \
  struct Texel<prefix##4> : Shape<channel, 4> {                                                        \
    template <class C>                                                                                 \
    static __device__ prefix##4 make(C x, C y, C z, C w) {                                             \
      return make_##prefix##4(static_cast<channel>(x), static_cast<channel>(y), static_cast<channel>(z), \
                              static_cast<channel>(w));                                                \
    }                                                                                                  \
  };
SONDE_TEXEL(char, signed char, char)
SONDE_TEXEL(unsigned char, unsigned char, uchar)
SONDE_TEXEL(short, short, short)
SONDE_TEXEL(unsigned short, unsigned short, ushort)
SONDE_TEXEL(int, int, int)
SONDE_TEXEL(unsigned int, unsigned int, uint)
SONDE_TEXEL(float, float, float)
template <>
struct Texel<signed char> : Texel<char> {};
#undef SONDE_TEXEL
#undef SONDE_TEXEL_VECTORS

/* What the instruction gives for a channel: float, int or unsigned. */
template <class Channel> struct Word { typedef unsigned type; };
template <> struct Word<signed char> { typedef int type; };
template <> struct Word<short> { typedef int type; };
template <> struct Word<int> { typedef int type; };
template <> struct Word<float> { typedef float type; };

template <class W>
struct Four {
  W x, y, z, w;
};

}  // namespace sonde_texture

/* One overload for each sort of word: fetch_name(words, texture, coordinates …). */
#define SONDE_FETCH_ONE(name, word, constraint, instruction, parameters, ...)                          \
  SONDE_DEVICE void fetch_##name(sonde_texture::Four<word> &r, cudaTextureObject_t t SONDE_COMMA parameters) { \
    __asm__(instruction : "=" constraint(r.x), "=" constraint(r.y), "=" constraint(r.z), "=" constraint(r.w) \
            : "l"(t), __VA_ARGS__);                                                                    \
  }
#define SONDE_COMMA ,
#define SONDE_STRIP(...) __VA_ARGS__
#define SONDE_FETCH(name, head, tail, parameters, arguments, ...)                                      \
  SONDE_FETCH_ONE(name, float, "f", head ".v4.f32." tail, SONDE_STRIP parameters, __VA_ARGS__)         \
  SONDE_FETCH_ONE(name, int, "r", head ".v4.s32." tail, SONDE_STRIP parameters, __VA_ARGS__)           \
  SONDE_FETCH_ONE(name, unsigned, "r", head ".v4.u32." tail, SONDE_STRIP parameters, __VA_ARGS__)      \
  template <class T>                                                                                   \
  SONDE_DEVICE T name(cudaTextureObject_t t SONDE_COMMA SONDE_STRIP parameters) {                      \
    sonde_texture::Four<typename sonde_texture::Word<typename sonde_texture::Texel<T>::channel>::type> r; \
    fetch_##name(r, t, SONDE_STRIP arguments);                                                         \
    return sonde_texture::Texel<T>::make(r.x, r.y, r.z, r.w);                                          \
  }                                                                                                    \
  template <class T>                                                                                   \
  SONDE_DEVICE void name(T *result, cudaTextureObject_t t SONDE_COMMA SONDE_STRIP parameters) {        \
    *result = name<T>(t, SONDE_STRIP arguments);                                                       \
  }

SONDE_FETCH(tex1Dfetch, "tex.1d", "s32 {%0, %1, %2, %3}, [%4, {%5}];", (int x), (x), "r"(x))
SONDE_FETCH(tex1D, "tex.1d", "f32 {%0, %1, %2, %3}, [%4, {%5}];", (float x), (x), "f"(x))
SONDE_FETCH(tex2D, "tex.2d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6}];", (float x, float y), (x, y), "f"(x), "f"(y))
SONDE_FETCH(tex3D, "tex.3d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];", (float x, float y, float z), (x, y, z),
            "f"(x), "f"(y), "f"(z))
SONDE_FETCH(tex1DLayered, "tex.a1d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6}];", (float x, int layer), (x, layer),
            "r"(layer), "f"(x))
SONDE_FETCH(tex2DLayered, "tex.a2d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];", (float x, float y, int layer),
            (x, y, layer), "r"(layer), "f"(x), "f"(y))
SONDE_FETCH(texCubemap, "tex.cube", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];", (float x, float y, float z),
            (x, y, z), "f"(x), "f"(y), "f"(z))
SONDE_FETCH(texCubemapLayered, "tex.acube", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %8}];",
            (float x, float y, float z, int layer), (x, y, z, layer), "r"(layer), "f"(x), "f"(y), "f"(z))

/* At a level of a mipmap. */
SONDE_FETCH(tex1DLod, "tex.level.1d", "f32 {%0, %1, %2, %3}, [%4, {%5}], %6;", (float x, float level), (x, level),
            "f"(x), "f"(level))
SONDE_FETCH(tex2DLod, "tex.level.2d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7;", (float x, float y, float level),
            (x, y, level), "f"(x), "f"(y), "f"(level))
SONDE_FETCH(tex3DLod, "tex.level.3d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}], %8;",
            (float x, float y, float z, float level), (x, y, z, level), "f"(x), "f"(y), "f"(z), "f"(level))
SONDE_FETCH(tex1DLayeredLod, "tex.level.a1d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7;",
            (float x, int layer, float level), (x, layer, level), "r"(layer), "f"(x), "f"(level))
SONDE_FETCH(tex2DLayeredLod, "tex.level.a2d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}], %8;",
            (float x, float y, int layer, float level), (x, y, layer, level), "r"(layer), "f"(x), "f"(y), "f"(level))
SONDE_FETCH(texCubemapLod, "tex.level.cube", "f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}], %8;",
            (float x, float y, float z, float level), (x, y, z, level), "f"(x), "f"(y), "f"(z), "f"(level))

/* With derivatives. */
SONDE_FETCH(tex1DGrad, "tex.grad.1d", "f32 {%0, %1, %2, %3}, [%4, {%5}], {%6}, {%7};",
            (float x, float dx, float dy), (x, dx, dy), "f"(x), "f"(dx), "f"(dy))
SONDE_FETCH(tex2DGrad, "tex.grad.2d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6}], {%7, %8}, {%9, %10};",
            (float x, float y, float2 dx, float2 dy), (x, y, dx, dy), "f"(x), "f"(y), "f"(dx.x), "f"(dx.y),
            "f"(dy.x), "f"(dy.y))

/* One channel of the four elements around a place. */
#define SONDE_GATHER(channel)                                                                          \
  SONDE_FETCH(sonde_gather_##channel, "tld4." #channel ".2d", "f32 {%0, %1, %2, %3}, [%4, {%5, %6}];", \
              (float x, float y), (x, y), "f"(x), "f"(y))
SONDE_GATHER(r)
SONDE_GATHER(g)
SONDE_GATHER(b)
SONDE_GATHER(a)
#undef SONDE_GATHER
template <class T>
SONDE_DEVICE T tex2Dgather(cudaTextureObject_t t, float x, float y, int component = 0) {
  return component == 1   ? sonde_gather_g<T>(t, x, y)
         : component == 2 ? sonde_gather_b<T>(t, x, y)
         : component == 3 ? sonde_gather_a<T>(t, x, y)
                          : sonde_gather_r<T>(t, x, y);
}
template <class T>
SONDE_DEVICE void tex2Dgather(T *result, cudaTextureObject_t t, float x, float y, int component = 0) {
  *result = tex2Dgather<T>(t, x, y, component);
}

#undef SONDE_FETCH
#undef SONDE_FETCH_ONE

/* -------------------------------------------------------------- surfaces -- */

namespace sonde_texture {

/* A surface is read and written in pieces of 1, 2, 4, 8 or 16 bytes. */
template <int bytes> struct Piece;
template <> struct Piece<1> { unsigned short a; };
template <> struct Piece<2> { unsigned short a; };
template <> struct Piece<4> { unsigned a; };
template <> struct Piece<8> { unsigned a, b; };
template <> struct Piece<16> { unsigned a, b, c, d; };

}  // namespace sonde_texture

/* name: of the geometry; coordinates as the instruction has them, %N from where the data ends. */
#define SONDE_SURFACE_MODE(name, mode, geometry, c1, c2, c4, parameters, ...)                          \
  SONDE_DEVICE void load_##name##_##mode(sonde_texture::Piece<1> &p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("suld.b." geometry ".b8." #mode " {%0}, [%1, " c1 "];" : "=h"(p.a) : "l"(s), __VA_ARGS__ : "memory"); \
  }                                                                                                    \
  SONDE_DEVICE void load_##name##_##mode(sonde_texture::Piece<2> &p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("suld.b." geometry ".b16." #mode " {%0}, [%1, " c1 "];" : "=h"(p.a) : "l"(s), __VA_ARGS__ : "memory"); \
  }                                                                                                    \
  SONDE_DEVICE void load_##name##_##mode(sonde_texture::Piece<4> &p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("suld.b." geometry ".b32." #mode " {%0}, [%1, " c1 "];" : "=r"(p.a) : "l"(s), __VA_ARGS__ : "memory"); \
  }                                                                                                    \
  SONDE_DEVICE void load_##name##_##mode(sonde_texture::Piece<8> &p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("suld.b." geometry ".v2.b32." #mode " {%0, %1}, [%2, " c2 "];"                    \
                     : "=r"(p.a), "=r"(p.b) : "l"(s), __VA_ARGS__ : "memory");                         \
  }                                                                                                    \
  SONDE_DEVICE void load_##name##_##mode(sonde_texture::Piece<16> &p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("suld.b." geometry ".v4.b32." #mode " {%0, %1, %2, %3}, [%4, " c4 "];"            \
                     : "=r"(p.a), "=r"(p.b), "=r"(p.c), "=r"(p.d) : "l"(s), __VA_ARGS__ : "memory");   \
  }                                                                                                    \
  SONDE_DEVICE void save_##name##_##mode(sonde_texture::Piece<1> p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("sust.b." geometry ".b8." #mode " [%1, " c1 "], {%0};" ::"h"(p.a), "l"(s), __VA_ARGS__ : "memory"); \
  }                                                                                                    \
  SONDE_DEVICE void save_##name##_##mode(sonde_texture::Piece<2> p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("sust.b." geometry ".b16." #mode " [%1, " c1 "], {%0};" ::"h"(p.a), "l"(s), __VA_ARGS__ : "memory"); \
  }                                                                                                    \
  SONDE_DEVICE void save_##name##_##mode(sonde_texture::Piece<4> p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("sust.b." geometry ".b32." #mode " [%1, " c1 "], {%0};" ::"r"(p.a), "l"(s), __VA_ARGS__ : "memory"); \
  }                                                                                                    \
  SONDE_DEVICE void save_##name##_##mode(sonde_texture::Piece<8> p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("sust.b." geometry ".v2.b32." #mode " [%2, " c2 "], {%0, %1};" ::"r"(p.a), "r"(p.b), "l"(s),  \
                     __VA_ARGS__ : "memory");                                                          \
  }                                                                                                    \
  SONDE_DEVICE void save_##name##_##mode(sonde_texture::Piece<16> p, cudaSurfaceObject_t s SONDE_COMMA parameters) { \
    __asm__ volatile("sust.b." geometry ".v4.b32." #mode " [%4, " c4 "], {%0, %1, %2, %3};" ::"r"(p.a), "r"(p.b), \
                     "r"(p.c), "r"(p.d), "l"(s), __VA_ARGS__ : "memory");                              \
  }

#define SONDE_SURFACE(name, geometry, c1, c2, c4, parameters, arguments, ...)                          \
  SONDE_SURFACE_MODE(name, trap, geometry, c1, c2, c4, SONDE_STRIP parameters, __VA_ARGS__)            \
  SONDE_SURFACE_MODE(name, clamp, geometry, c1, c2, c4, SONDE_STRIP parameters, __VA_ARGS__)           \
  SONDE_SURFACE_MODE(name, zero, geometry, c1, c2, c4, SONDE_STRIP parameters, __VA_ARGS__)            \
  template <class T>                                                                                   \
  SONDE_DEVICE T name##read(cudaSurfaceObject_t s SONDE_COMMA SONDE_STRIP parameters,                  \
                            cudaSurfaceBoundaryMode boundary = cudaBoundaryModeTrap) {                 \
    sonde_texture::Piece<sizeof(T)> p;                                                                 \
    if (boundary == cudaBoundaryModeClamp)                                                             \
      load_##name##_clamp(p, s, SONDE_STRIP arguments);                                                \
    else if (boundary == cudaBoundaryModeZero)                                                         \
      load_##name##_zero(p, s, SONDE_STRIP arguments);                                                 \
    else                                                                                               \
      load_##name##_trap(p, s, SONDE_STRIP arguments);                                                 \
    T value;                                                                                           \
    __builtin_memcpy(&value, &p, sizeof(T));                                                           \
    return value;                                                                                      \
  }                                                                                                    \
  template <class T>                                                                                   \
  SONDE_DEVICE void name##read(T *value, cudaSurfaceObject_t s SONDE_COMMA SONDE_STRIP parameters,     \
                               cudaSurfaceBoundaryMode boundary = cudaBoundaryModeTrap) {              \
    *value = name##read<T>(s, SONDE_STRIP arguments, boundary);                                        \
  }                                                                                                    \
  template <class T>                                                                                   \
  SONDE_DEVICE void name##write(T value, cudaSurfaceObject_t s SONDE_COMMA SONDE_STRIP parameters,     \
                                cudaSurfaceBoundaryMode boundary = cudaBoundaryModeTrap) {             \
    sonde_texture::Piece<sizeof(T)> p = {};                                                            \
    __builtin_memcpy(&p, &value, sizeof(T));                                                           \
    if (boundary == cudaBoundaryModeClamp)                                                             \
      save_##name##_clamp(p, s, SONDE_STRIP arguments);                                                \
    else if (boundary == cudaBoundaryModeZero)                                                         \
      save_##name##_zero(p, s, SONDE_STRIP arguments);                                                 \
    else                                                                                               \
      save_##name##_trap(p, s, SONDE_STRIP arguments);                                                 \
  }

SONDE_SURFACE(surf1D, "1d", "{%2}", "{%3}", "{%5}", (int x), (x), "r"(x))
SONDE_SURFACE(surf2D, "2d", "{%2, %3}", "{%3, %4}", "{%5, %6}", (int x, int y), (x, y), "r"(x), "r"(y))
SONDE_SURFACE(surf3D, "3d", "{%2, %3, %4, %4}", "{%3, %4, %5, %5}", "{%5, %6, %7, %7}", (int x, int y, int z),
              (x, y, z), "r"(x), "r"(y), "r"(z))
SONDE_SURFACE(surf1DLayered, "a1d", "{%2, %3}", "{%3, %4}", "{%5, %6}", (int x, int layer), (x, layer), "r"(layer),
              "r"(x))
SONDE_SURFACE(surf2DLayered, "a2d", "{%2, %3, %4, %4}", "{%3, %4, %5, %5}", "{%5, %6, %7, %7}",
              (int x, int y, int layer), (x, y, layer), "r"(layer), "r"(x), "r"(y))
SONDE_SURFACE(surfCubemap, "a2d", "{%2, %3, %4, %4}", "{%3, %4, %5, %5}", "{%5, %6, %7, %7}",
              (int x, int y, int face), (x, y, face), "r"(face), "r"(x), "r"(y))
SONDE_SURFACE(surfCubemapLayered, "a2d", "{%2, %3, %4, %4}", "{%3, %4, %5, %5}", "{%5, %6, %7, %7}",
              (int x, int y, int layerFace), (x, y, layerFace), "r"(layerFace), "r"(x), "r"(y))

#undef SONDE_SURFACE
#undef SONDE_SURFACE_MODE
#undef SONDE_STRIP
#undef SONDE_COMMA

#endif /* SONDE_SOFTGPU_DEVICE_TEXTURE_H_ */
