// SPDX-License-Identifier: Apache-2.0
// Copies and sets of linear memory, one- and two-dimensional, and symbols.
#include <algorithm>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {
namespace {

bool validKind(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

CUmemorytype sourceType(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype destinationType(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

cudaError_t copy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  if (!validKind(kind)) return cudaErrorInvalidMemcpyDirection;
  SONDE_TRY(ensureContext());
  if (count == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice: return SONDE_CU(cuMemcpyHtoD, devicePointer(dst), src, count);
    case cudaMemcpyDeviceToHost: return SONDE_CU(cuMemcpyDtoH, dst, devicePointer(src), count);
    case cudaMemcpyDeviceToDevice: return SONDE_CU(cuMemcpyDtoD, devicePointer(dst), devicePointer(src), count);
    default: return SONDE_CU(cuMemcpy, devicePointer(dst), devicePointer(src), count);
  }
}

cudaError_t copyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!validKind(kind)) return cudaErrorInvalidMemcpyDirection;
  SONDE_TRY(ensureContext());
  if (count == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice: return SONDE_CU(cuMemcpyHtoDAsync, devicePointer(dst), src, count, stream);
    case cudaMemcpyDeviceToHost: return SONDE_CU(cuMemcpyDtoHAsync, dst, devicePointer(src), count, stream);
    case cudaMemcpyDeviceToDevice:
      return SONDE_CU(cuMemcpyDtoDAsync, devicePointer(dst), devicePointer(src), count, stream);
    default: return SONDE_CU(cuMemcpyAsync, devicePointer(dst), devicePointer(src), count, stream);
  }
}

// One side of a two-dimensional copy that is linear memory.
void setSource(CUDA_MEMCPY2D* to, const void* src, size_t pitch, cudaMemcpyKind kind) {
  to->srcMemoryType = sourceType(kind);
  if (to->srcMemoryType == CU_MEMORYTYPE_HOST)
    to->srcHost = src;
  else
    to->srcDevice = devicePointer(src);
  to->srcPitch = pitch;
}

void setDestination(CUDA_MEMCPY2D* to, void* dst, size_t pitch, cudaMemcpyKind kind) {
  to->dstMemoryType = destinationType(kind);
  if (to->dstMemoryType == CU_MEMORYTYPE_HOST)
    to->dstHost = dst;
  else
    to->dstDevice = devicePointer(dst);
  to->dstPitch = pitch;
}

cudaError_t plan2D(CUDA_MEMCPY2D* to, void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                   size_t height, cudaMemcpyKind kind) {
  if (!validKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (height > 1 && (width > dpitch || width > spitch)) return cudaErrorInvalidPitchValue;
  setSource(to, src, spitch, kind);
  setDestination(to, dst, dpitch, kind);
  to->WidthInBytes = width;
  to->Height = height;
  return cudaSuccess;
}

cudaError_t planToArray(CUDA_MEMCPY2D* to, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src,
                        size_t spitch, size_t width, size_t height, cudaMemcpyKind kind) {
  if (!validKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (!dst) return cudaErrorInvalidResourceHandle;
  if (height > 1 && width > spitch) return cudaErrorInvalidPitchValue;
  setSource(to, src, spitch, kind);
  to->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  to->dstArray = driverArray(dst);
  to->dstXInBytes = wOffset;
  to->dstY = hOffset;
  to->WidthInBytes = width;
  to->Height = height;
  return cudaSuccess;
}

cudaError_t planFromArray(CUDA_MEMCPY2D* to, void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset,
                          size_t hOffset, size_t width, size_t height, cudaMemcpyKind kind) {
  if (!validKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (!src) return cudaErrorInvalidResourceHandle;
  if (height > 1 && width > dpitch) return cudaErrorInvalidPitchValue;
  to->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  to->srcArray = driverArray(src);
  to->srcXInBytes = wOffset;
  to->srcY = hOffset;
  setDestination(to, dst, dpitch, kind);
  to->WidthInBytes = width;
  to->Height = height;
  return cudaSuccess;
}

cudaError_t run2D(const CUDA_MEMCPY2D& plan) {
  SONDE_TRY(ensureContext());
  if (plan.WidthInBytes == 0 || plan.Height == 0) return cudaSuccess;
  return SONDE_CU(cuMemcpy2DUnaligned, &plan);
}

cudaError_t run2D(const CUDA_MEMCPY2D& plan, cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  if (plan.WidthInBytes == 0 || plan.Height == 0) return cudaSuccess;
  return SONDE_CU(cuMemcpy2DAsync, &plan, stream);
}

cudaError_t symbolAddress(const void* symbol, size_t count, size_t offset, void** address) {
  SONDE_TRY(ensureContext());
  CUdeviceptr base = 0;
  size_t size = 0;
  SONDE_TRY(registry().variable(symbol, &base, &size));
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  *address = reinterpret_cast<void*>(base + offset);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) {
  return copy(dst, src, count, kind);
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copyAsync(dst, src, count, kind, stream);
}

cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  CUDA_MEMCPY2D plan{};
  SONDE_TRY(plan2D(&plan, dst, dpitch, src, spitch, width, height, kind));
  return run2D(plan);
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D plan{};
  SONDE_TRY(plan2D(&plan, dst, dpitch, src, spitch, width, height, kind));
  return run2D(plan, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
  CUDA_MEMCPY2D plan{};
  SONDE_TRY(planToArray(&plan, dst, wOffset, hOffset, src, spitch, width, height, kind));
  return run2D(plan);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch,
                                     size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D plan{};
  SONDE_TRY(planToArray(&plan, dst, wOffset, hOffset, src, spitch, width, height, kind));
  return run2D(plan, stream);
}

cudaError_t cudaMemcpy2DFromArray(void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                  size_t width, size_t height, enum cudaMemcpyKind kind) {
  CUDA_MEMCPY2D plan{};
  SONDE_TRY(planFromArray(&plan, dst, dpitch, src, wOffset, hOffset, width, height, kind));
  return run2D(plan);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                       size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D plan{};
  SONDE_TRY(planFromArray(&plan, dst, dpitch, src, wOffset, hOffset, width, height, kind));
  return run2D(plan, stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                     size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height,
                                     enum cudaMemcpyKind kind) {
  if (!dst || !src) return cudaErrorInvalidResourceHandle;
  CUDA_MEMCPY2D plan{};
  plan.srcMemoryType = plan.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  plan.srcArray = driverArray(src);
  plan.srcXInBytes = wOffsetSrc;
  plan.srcY = hOffsetSrc;
  plan.dstArray = driverArray(dst);
  plan.dstXInBytes = wOffsetDst;
  plan.dstY = hOffsetDst;
  plan.WidthInBytes = width;
  plan.Height = height;
  return run2D(plan);
}

// Bytes of rows on end, on both sides.
cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                   size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind) {
  if (!dst || !src) return cudaErrorInvalidResourceHandle;
  if (!validKind(kind)) return cudaErrorInvalidMemcpyDirection;
  SONDE_TRY(ensureContext());
  CUDA_ARRAY3D_DESCRIPTOR from{}, to{};
  size_t element = 0, width = 0, targetWidth = 0;
  SONDE_TRY(SONDE_CU(cuArray3DGetDescriptor, &from, driverArray(src)));
  SONDE_TRY(arrayElementSize(driverArray(src), &element));
  width = from.Width * element;
  SONDE_TRY(SONDE_CU(cuArray3DGetDescriptor, &to, driverArray(dst)));
  SONDE_TRY(arrayElementSize(driverArray(dst), &element));
  targetWidth = to.Width * element;
  auto fits = [count](size_t x, size_t y, size_t rowBytes, size_t rows) {
    return x <= rowBytes && y < rows && count <= (rows - y) * rowBytes - x;
  };
  if (!fits(wOffsetSrc, hOffsetSrc, width, from.Height ? from.Height : 1) ||
      !fits(wOffsetDst, hOffsetDst, targetWidth, to.Height ? to.Height : 1))
    return cudaErrorInvalidValue;
  for (size_t left = count; left > 0;) {
    const size_t part = std::min({left, width - wOffsetSrc, targetWidth - wOffsetDst});
    if (part > 0)
      SONDE_TRY(
          impl::cudaMemcpy2DArrayToArray(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, part, 1, kind));
    left -= part;
    auto advance = [part](size_t& x, size_t& y, size_t rowBytes) {
      x += part;
      if (x == rowBytes) {
        x = 0;
        y++;
      }
    };
    advance(wOffsetSrc, hOffsetSrc, width);
    advance(wOffsetDst, hOffsetDst, targetWidth);
  }
  return cudaSuccess;
}

// ------------------------------------------------- bytes of rows on end

namespace {

// Splits `count` bytes, from byte x of row y of an array on, into at most
// three rectangles: the rest of the first row, whole rows, the last row's
// beginning. part(x, y, offset, width, rows) copies one.
template <typename Part>
cudaError_t alongRows(cudaArray_const_t array, size_t x, size_t y, size_t count, Part part) {
  if (!array) return cudaErrorInvalidResourceHandle;
  SONDE_TRY(ensureContext());
  size_t element = 0;
  SONDE_TRY(arrayElementSize(driverArray(array), &element));
  CUDA_ARRAY3D_DESCRIPTOR description{};
  SONDE_TRY(SONDE_CU(cuArray3DGetDescriptor, &description, driverArray(array)));
  const size_t row = description.Width * element, rows = description.Height ? description.Height : 1;
  if (x > row || y >= rows || count > (rows - y) * row - x) return cudaErrorInvalidValue;
  size_t done = 0;
  while (done < count) {
    size_t width = row - x, height = 1;
    if (x == 0 && count - done >= row)
      height = (count - done) / row;
    else if (width > count - done)
      width = count - done;
    SONDE_TRY(part(x, y, done, width, height));
    done += width * height;
    x = x + width == row ? 0 : x + width;
    y += height;
  }
  return cudaSuccess;
}

const char* bytesAt(const void* p, size_t offset) { return static_cast<const char*>(p) + offset; }
char* bytesAt(void* p, size_t offset) { return static_cast<char*>(p) + offset; }

}  // namespace

cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                              enum cudaMemcpyKind kind) {
  return alongRows(dst, wOffset, hOffset, count, [&](size_t x, size_t y, size_t offset, size_t width, size_t rows) {
    return impl::cudaMemcpy2DToArray(dst, x, y, bytesAt(src, offset), width, width, rows, kind);
  });
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                                   enum cudaMemcpyKind kind, cudaStream_t stream) {
  return alongRows(dst, wOffset, hOffset, count, [&](size_t x, size_t y, size_t offset, size_t width, size_t rows) {
    return impl::cudaMemcpy2DToArrayAsync(dst, x, y, bytesAt(src, offset), width, width, rows, kind, stream);
  });
}

cudaError_t cudaMemcpyFromArray(void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                enum cudaMemcpyKind kind) {
  return alongRows(src, wOffset, hOffset, count, [&](size_t x, size_t y, size_t offset, size_t width, size_t rows) {
    return impl::cudaMemcpy2DFromArray(bytesAt(dst, offset), width, src, x, y, width, rows, kind);
  });
}

cudaError_t cudaMemcpyFromArrayAsync(void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {
  return alongRows(src, wOffset, hOffset, count, [&](size_t x, size_t y, size_t offset, size_t width, size_t rows) {
    return impl::cudaMemcpy2DFromArrayAsync(bytesAt(dst, offset), width, src, x, y, width, rows, kind, stream);
  });
}

// ------------------------------------------------------------------- peers

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  CUcontext to = nullptr, from = nullptr;
  SONDE_TRY(ensureContext());
  SONDE_TRY(primaryContext(dstDevice, &to));
  SONDE_TRY(primaryContext(srcDevice, &from));
  if (count == 0) return cudaSuccess;
  return SONDE_CU(cuMemcpyPeer, devicePointer(dst), to, devicePointer(src), from, count);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  CUcontext to = nullptr, from = nullptr;
  SONDE_TRY(ensureContext());
  SONDE_TRY(primaryContext(dstDevice, &to));
  SONDE_TRY(primaryContext(srcDevice, &from));
  if (count == 0) return cudaSuccess;
  return SONDE_CU(cuMemcpyPeerAsync, devicePointer(dst), to, devicePointer(src), from, count, stream);
}

// -------------------------------------------------------------------- sets

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  SONDE_TRY(ensureContext());
  if (count == 0) return cudaSuccess;
  return SONDE_CU(cuMemsetD8, devicePointer(devPtr), static_cast<unsigned char>(value), count);
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  if (count == 0) return cudaSuccess;
  return SONDE_CU(cuMemsetD8Async, devicePointer(devPtr), static_cast<unsigned char>(value), count, stream);
}

cudaError_t cudaMemset2D(void* devPtr, size_t pitch, int value, size_t width, size_t height) {
  if (height > 1 && width > pitch) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  if (width == 0 || height == 0) return cudaSuccess;
  return SONDE_CU(cuMemsetD2D8, devicePointer(devPtr), pitch, static_cast<unsigned char>(value), width, height);
}

cudaError_t cudaMemset2DAsync(void* devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (height > 1 && width > pitch) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  if (width == 0 || height == 0) return cudaSuccess;
  return SONDE_CU(cuMemsetD2D8Async, devicePointer(devPtr), pitch, static_cast<unsigned char>(value), width, height,
                  stream);
}

namespace {

// A box of rows: one call when the slices lie without gaps, else one a slice.
template <typename Set>
cudaError_t set3D(const cudaPitchedPtr& target, const cudaExtent& extent, Set set) {
  if (extent.width > target.pitch || extent.height > target.ysize) return cudaErrorInvalidValue;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (extent.height == target.ysize) return set(target.ptr, extent.height * extent.depth);
  for (size_t z = 0; z < extent.depth; ++z)
    SONDE_TRY(set(static_cast<char*>(target.ptr) + z * target.pitch * target.ysize, extent.height));
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent) {
  return set3D(pitchedDevPtr, extent, [&](void* at, size_t rows) {
    return impl::cudaMemset2D(at, pitchedDevPtr.pitch, value, extent.width, rows);
  });
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
  return set3D(pitchedDevPtr, extent, [&](void* at, size_t rows) {
    return impl::cudaMemset2DAsync(at, pitchedDevPtr.pitch, value, extent.width, rows, stream);
  });
}

// ----------------------------------------------------------------- symbols

cudaError_t cudaGetSymbolAddress(void** devPtr, const void* symbol) {
  if (!devPtr) return cudaErrorInvalidValue;
  return symbolAddress(symbol, 0, 0, devPtr);
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  if (!size) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUdeviceptr base = 0;
  size_t found = 0;
  SONDE_TRY(registry().variable(symbol, &base, &found));
  *size = found;
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                               enum cudaMemcpyKind kind) {
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  void* address = nullptr;
  SONDE_TRY(symbolAddress(symbol, count, offset, &address));
  return copy(address, src, count, kind);
}

cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  void* address = nullptr;
  SONDE_TRY(symbolAddress(symbol, count, offset, &address));
  return copy(dst, address, count, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  void* address = nullptr;
  SONDE_TRY(symbolAddress(symbol, count, offset, &address));
  return copyAsync(address, src, count, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  void* address = nullptr;
  SONDE_TRY(symbolAddress(symbol, count, offset, &address));
  return copyAsync(dst, address, count, kind, stream);
}

}  // namespace sonde::cudart::impl
