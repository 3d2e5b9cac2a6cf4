// SPDX-License-Identifier: Apache-2.0
// What tools ask before they choose an interface: versions, chip names, and
// whether the profiler interface can be used.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace sonde::test {
namespace {

TEST(Profiler, InitializeTakesItsParametersAlone) {
  CUpti_Profiler_Initialize_Params p = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE, nullptr};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiProfilerInitialize(nullptr));
  p.structSize = 0;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiProfilerInitialize(&p));
  p.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiProfilerInitialize(&p));
  CUpti_Profiler_DeInitialize_Params d = {CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE, nullptr};
  EXPECT_EQ(CUPTI_SUCCESS, cuptiProfilerDeInitialize(&d));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiProfilerDeInitialize(nullptr));
}

TEST(Profiler, DevicesNeedADriverThatIsInitialised) {
  CUpti_Device_GetChipName_Params p = {CUpti_Device_GetChipName_Params_STRUCT_SIZE, nullptr, 0, nullptr};
  EXPECT_EQ(CUPTI_ERROR_NOT_INITIALIZED, cuptiDeviceGetChipName(&p));
  EXPECT_EQ(nullptr, p.pChipName);
}

TEST(Profiler, NoDeviceCanBeProfiledThisWay) {
  ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  CUpti_Profiler_DeviceSupported_Params p = {};
  p.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiProfilerDeviceSupported(&p));
  EXPECT_EQ(CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, p.isSupported);
  EXPECT_EQ(CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, p.architecture);
  EXPECT_EQ(CUPTI_PROFILER_CONFIGURATION_SUPPORTED, p.wsl);
  // A program of a release that had no wsl: nothing is written there.
  std::memset(&p, 0x5a, sizeof p);
  p.structSize = CUPTI_PROFILER_STRUCT_SIZE(CUpti_Profiler_DeviceSupported_Params, cmp);
  p.pPriv = nullptr;
  p.cuDevice = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiProfilerDeviceSupported(&p));
  EXPECT_EQ(CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, p.isSupported);
  EXPECT_EQ(0x5a5a5a5a, static_cast<int>(p.wsl));
  p.cuDevice = 99;
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiProfilerDeviceSupported(&p));
}

TEST(Profiler, ChipsHaveTheNameOfTheirModel) {
  // SONDE_DEVICES=default,kepler
  ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  const char* wanted[] = {"sonde90", "sonde35"};
  CUpti_Device_GetChipName_Params p = {CUpti_Device_GetChipName_Params_STRUCT_SIZE, nullptr, 0, nullptr};
  for (p.deviceIndex = 0; p.deviceIndex < 2; ++p.deviceIndex) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiDeviceGetChipName(&p));
    EXPECT_STREQ(wanted[p.deviceIndex], p.pChipName);
  }
  const char* before = p.pChipName;
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetChipName(&p));
  EXPECT_EQ(before, p.pChipName);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetChipName(nullptr));
}

// SONDE_CUDA_VERSION names the toolkit that the libraries say they belong to;
// the driver stays what it is.
TEST(Profiler, VersionsAreThoseAskedFor) {
  const char* asked = std::getenv("SONDE_CUDA_VERSION");
  const bool older = asked && std::strcmp(asked, "12.9") == 0;
  uint32_t version = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetVersion(&version));
  EXPECT_EQ(older ? 28u : 130001u, version);
  int runtime = 0, driver = 0;
  ASSERT_EQ(cudaSuccess, cudaRuntimeGetVersion(&runtime));
  EXPECT_EQ(older ? 12090 : 13000, runtime);
  ASSERT_EQ(cudaSuccess, cudaDriverGetVersion(&driver));
  EXPECT_EQ(13000, driver);
}

}  // namespace
}  // namespace sonde::test
