// SPDX-License-Identifier: Apache-2.0
// cuptiActivityGetNextRecord on any bytes: a walk ends, stays inside the buffer
// and never reads outside (AddressSanitizer watches the exact-size copy).
#include <cupti.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto* buffer = static_cast<uint8_t*>(std::malloc(size == 0 ? 1 : size));
  std::memcpy(buffer, data, size);
  CUpti_Activity* record = nullptr;
  CUptiResult result;
  size_t steps = 0;
  uint8_t* last = nullptr;
  while ((result = cuptiActivityGetNextRecord(buffer, size, &record)) == CUPTI_SUCCESS) {
    auto* at = reinterpret_cast<uint8_t*>(record);
    if (at < buffer || at + sizeof(CUpti_ActivityKind) > buffer + size || (last != nullptr && at <= last)) std::abort();
    last = at;
    if (++steps > size) std::abort();
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED && result != CUPTI_ERROR_INVALID_KIND) std::abort();
  // A record pointer from anywhere.
  if (size >= 8) {
    uint64_t offset;
    std::memcpy(&offset, data, sizeof offset);
    record = reinterpret_cast<CUpti_Activity*>(reinterpret_cast<uintptr_t>(buffer) + offset % (2 * size));
    cuptiActivityGetNextRecord(buffer, size, &record);
  }
  std::free(buffer);
  return 0;
}
