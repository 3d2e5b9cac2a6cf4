// SPDX-License-Identifier: Apache-2.0
//
// The functions that compilers call on the device: printf, assert, malloc.
// Arguments are rows of 32-lane words.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "softgpu/exec/condition.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/device_heap.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/mma_helpers.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/exec/texture.h"

namespace sonde::softgpu::exec {

namespace {

using Row = uint32_t[kLanes];

uint64_t argument64(const void* args, uint32_t word, uint32_t lane) {
  const auto* rows = static_cast<const Row*>(args);
  return rows[word][lane] | uint64_t{rows[word + 1][lane]} << 32;
}

template <class T>
SONDE_DEVICE_CODE T readDevice(WarpState* w, uint64_t address, uint32_t lane) {
  T value{};
  auto* to = reinterpret_cast<volatile uint8_t*>(&value);
  for (size_t i = 0; i < sizeof(T); ++i)
    to[i] = *static_cast<const volatile uint8_t*>(resolveLane(w, 0, address + i, 1, lane, false));
  return value;
}

std::string readString(WarpState* w, uint64_t address, uint32_t lane) {
  std::string s;
  if (!address) return "(null)";
  for (uint64_t i = 0; i < (1u << 20); ++i) {
    const char c = readDevice<char>(w, address + i, lane);
    if (!c) break;
    s += c;
  }
  return s;
}

std::string formatOne(WarpState* w, uint32_t lane, const std::string& format, uint64_t at) {
  std::string out;
  auto next32 = [&] {
    at = (at + 3) & ~uint64_t{3};
    const auto v = readDevice<int32_t>(w, at, lane);
    at += 4;
    return v;
  };
  auto next64 = [&] {
    at = (at + 7) & ~uint64_t{7};
    const auto v = readDevice<uint64_t>(w, at, lane);
    at += 8;
    return v;
  };
  char buffer[512];
  for (size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    const size_t begin = i++;
    if (i < format.size() && format[i] == '%') {
      out += '%';
      ++i;
      continue;
    }
    std::string spec = "%";
    while (i < format.size() && std::strchr("-+ #0", format[i])) spec += format[i++];
    auto number = [&] {
      if (i < format.size() && format[i] == '*') {
        spec += std::to_string(next32());
        ++i;
      } else {
        while (i < format.size() && format[i] >= '0' && format[i] <= '9') spec += format[i++];
      }
    };
    number();
    if (i < format.size() && format[i] == '.') {
      spec += format[i++];
      number();
    }
    unsigned longs = 0, shorts = 0;
    while (i < format.size() && std::strchr("hlLjzt", format[i])) {
      if (format[i] == 'h')
        ++shorts;
      else
        longs += format[i] == 'l' ? 1 : 2;
      ++i;
    }
    if (i >= format.size() || spec.size() > 64) {
      out += format.substr(begin);
      break;
    }
    const char c = format[i++];
    int n = 0;
    switch (c) {
      case 'd':
      case 'i':
        if (longs)
          n = std::snprintf(buffer, sizeof buffer, (spec + "lld").c_str(), static_cast<long long>(next64()));
        else {
          int v = next32();
          if (shorts == 1) v = static_cast<int16_t>(v);
          if (shorts >= 2) v = static_cast<int8_t>(v);
          n = std::snprintf(buffer, sizeof buffer, (spec + "d").c_str(), v);
        }
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        if (longs)
          n = std::snprintf(buffer, sizeof buffer, (spec + "ll" + c).c_str(),
                            static_cast<unsigned long long>(next64()));
        else {
          auto v = static_cast<unsigned>(next32());
          if (shorts == 1) v &= 0xffff;
          if (shorts >= 2) v &= 0xff;
          n = std::snprintf(buffer, sizeof buffer, (spec + c).c_str(), v);
        }
        break;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': {
        const uint64_t bits = next64();
        double d;
        std::memcpy(&d, &bits, sizeof d);
        n = std::snprintf(buffer, sizeof buffer, (spec + c).c_str(), d);
        break;
      }
      case 'c': n = std::snprintf(buffer, sizeof buffer, (spec + "c").c_str(), next32()); break;
      case 'p':
        n = std::snprintf(buffer, sizeof buffer, (spec + "p").c_str(), reinterpret_cast<void*>(next64()));
        break;
      case 's': {
        const std::string text = readString(w, next64(), lane);
        std::vector<char> big(text.size() + 1024);
        const int m = std::snprintf(big.data(), big.size(), (spec + "s").c_str(), text.c_str());
        if (m > 0) out.append(big.data(), std::min(static_cast<size_t>(m), big.size() - 1));
        continue;
      }
      default: out += format.substr(begin, i - begin); continue;
    }
    if (n > 0) out.append(buffer, std::min(static_cast<size_t>(n), sizeof buffer - 1));
  }
  return out;
}

// int vprintf(const char* format, void* arguments)
uint32_t deviceVprintf(WarpState* w, uint32_t mask, void* args, void* results) {
  Cta& cta = *w->cta;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const std::string format = readString(w, argument64(args, 0, l), l);
    const std::string text = formatOne(w, l, format, argument64(args, 2, l));
    cta.printBuffer.insert(cta.printBuffer.end(), text.begin(), text.end());
    static_cast<Row*>(results)[0][l] = static_cast<uint32_t>(text.size());
  }
  return mask;
}

// void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t charSize)
uint32_t deviceAssertFail(WarpState* w, uint32_t mask, void* args, void*) {
  Cta& cta = *w->cta;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    char buffer[2048];
    const int n = std::snprintf(
        buffer, sizeof buffer, "%s:%u: %s: block: [%u,%u,%u], thread: [%d,%d,%d] Assertion `%s` failed.\n",
        readString(w, argument64(args, 2, l), l).c_str(), static_cast<const Row*>(args)[4][l],
        readString(w, argument64(args, 5, l), l).c_str(), w->ctaid[0], w->ctaid[1], w->ctaid[2], w->tid[0][l],
        w->tid[1][l], w->tid[2][l], readString(w, argument64(args, 0, l), l).c_str());
    cta.printBuffer.insert(cta.printBuffer.end(), buffer,
                           buffer + std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
  }
  raiseFault(w, kErrorAssert, mask, 0, "an assertion failed");
}

DeviceHeap& heapOf(WarpState* w) {
  const LaunchRequest& r = *w->cta->grid->request;
  return DeviceHeap::of(r.device, r.heapBytes);
}

// void* malloc(size_t bytes)
uint32_t deviceMalloc(WarpState* w, uint32_t mask, void* args, void* results) {
  DeviceHeap& heap = heapOf(w);
  auto* rows = static_cast<Row*>(results);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t address = heap.allocate(argument64(args, 0, l));
    rows[0][l] = static_cast<uint32_t>(address);
    rows[1][l] = static_cast<uint32_t>(address >> 32);
  }
  return mask;
}

// void free(void* pointer)
uint32_t deviceFree(WarpState* w, uint32_t mask, void* args, void*) {
  DeviceHeap& heap = heapOf(w);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t address = argument64(args, 0, l);
    if (address && !heap.release(address))
      raiseFault(w, kErrorIllegalAddress, 1u << l, address, "free of something that malloc did not give:");
  }
  return mask;
}

// void cudaGraphSetConditional(handle, value): the highest lane's value stays.
uint32_t deviceSetConditional(WarpState* w, uint32_t mask, void* args, void*) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t handle = argument64(args, 0, l);
    if (!setCondition(handle, static_cast<const Row*>(args)[2][l]))
      raiseFault(w, kErrorLaunchFailed, 1u << l, handle, "cudaGraphSetConditional with a handle that is none:");
  }
  return mask;
}

// void __cxa_pure_virtual()
uint32_t devicePureVirtual(WarpState* w, uint32_t mask, void*, void*) {
  raiseFault(w, kErrorLaunchFailed, mask, 0, "a call of a pure virtual function");
}

}  // namespace

std::span<const jit::RuntimeSymbol> deviceFunctions() {
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_fn_vprintf", reinterpret_cast<void*>(&deviceVprintf)},
      {"sonde_fn_malloc", reinterpret_cast<void*>(&deviceMalloc)},
      {"sonde_fn_free", reinterpret_cast<void*>(&deviceFree)},
      {"sonde_fn_cudaGraphSetConditional", reinterpret_cast<void*>(&deviceSetConditional)},
      {"sonde_fn___cxa_pure_virtual", reinterpret_cast<void*>(&devicePureVirtual)},
      {"sonde_fn___assertfail", reinterpret_cast<void*>(&deviceAssertFail)},
  };
  return symbols;
}

bool isLaunchFunction(std::string_view name) {
  for (const auto& s : launchFunctions())
    if (std::string_view(s.name).substr(9) == name) return true;
  return false;
}

bool isDeviceFunction(std::string_view name) {
  for (const auto& s : deviceFunctions())
    if (std::string_view(s.name).substr(9) == name) return true;
  return isLaunchFunction(name);
}

std::span<const jit::RuntimeSymbol> allHelpers() {
  static const std::vector<jit::RuntimeSymbol>* all = [] {
    auto* v = new std::vector<jit::RuntimeSymbol>();
    for (auto list : {memoryHelpers(), counterHelpers(), warpHelpers(), deviceFunctions(), launchFunctions(),
                      matrixHelpers(), textureHelpers(), bulkHelpers(), checkHelpers()})
      v->insert(v->end(), list.begin(), list.end());
    return v;
  }();
  return *all;
}

}  // namespace sonde::softgpu::exec
