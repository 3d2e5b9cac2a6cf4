// SPDX-License-Identifier: Apache-2.0
// The checksum by which profilers know a module's image.
#include <cupti_pcsampling.h>

#include <array>

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

// CRC-64 of ECMA-182, reflected (as in xz).
constexpr std::array<uint64_t, 256> kTable = [] {
  std::array<uint64_t, 256> table{};
  for (uint64_t i = 0; i < 256; ++i) {
    uint64_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xc96c5795d7870f42u : 0);
    table[i] = value;
  }
  return table;
}();

}  // namespace

extern "C" CUptiResult CUPTIAPI cuptiRegisterComputeCrcCallback(CUpti_ComputeCrcCallbackFunc funcComputeCubinCrc) {
  if (funcComputeCubinCrc == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "funcComputeCubinCrc is NULL");
  SONDE_CLIENT(client);
  if (requirePlatform() == nullptr) return CUPTI_ERROR_UNKNOWN;
  client->computeCrc.store(funcComputeCubinCrc);
  updateWanted();
  return CUPTI_SUCCESS;
}

extern "C" CUptiResult CUPTIAPI cuptiGetCubinCrc(CUpti_GetCubinCrcParams* pParams) {
  if (pParams == nullptr || pParams->cubin == nullptr || pParams->cubinSize == 0) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "pParams, its cubin or its cubinSize is not set");
  }
  if (pParams->size < CUpti_GetCubinCrcParamsSize) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "pParams->size is %zu; set it to CUpti_GetCubinCrcParamsSize",
                pParams->size);
  }
  const auto* bytes = static_cast<const unsigned char*>(pParams->cubin);
  uint64_t crc = ~uint64_t{0};
  for (size_t i = 0; i < pParams->cubinSize; ++i) crc = kTable[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  pParams->cubinCrc = ~crc;
  return CUPTI_SUCCESS;
}
