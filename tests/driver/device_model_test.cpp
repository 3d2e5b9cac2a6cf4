// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/device_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace sonde::softgpu::model {
namespace {

using ::testing::HasSubstr;

std::string errorOf(const std::string& json) {
  try {
    parseModel(json, "test.json");
    return "";
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

TEST(DeviceModelTest, CompiledInModels) {
  const auto models = modelsFor("default,kepler,hopper,default,blackwell");
  ASSERT_EQ(models.size(), 5u);
  EXPECT_EQ(models[0].id, "default");
  EXPECT_EQ(models[0].smCount, 16u);
  EXPECT_EQ(models[1].ccMajor, 3u);
  EXPECT_EQ(models[1].ccMinor, 5u);
  EXPECT_EQ(models[2].smCount, 132u);
  EXPECT_EQ(models[2].memoryBytes, 150109880320u);
  EXPECT_NE(models[0].uuid[15], models[3].uuid[15]);
  EXPECT_EQ(models[4].ccMajor, 12u);
  for (const auto& m : models) EXPECT_FALSE(m.countersJson.empty()) << m.id;
}

TEST(DeviceModelTest, NothingMeansDefault) {
  ASSERT_EQ(modelsFor("").size(), 1u);
  EXPECT_EQ(modelsFor("")[0].id, "default");
}

TEST(DeviceModelTest, MistakesNameFileKeyAndReason) {
  EXPECT_THAT(errorOf("{"), HasSubstr("test.json"));
  EXPECT_THAT(errorOf(R"({"name": "x", "smss": 3})"), HasSubstr("smss is not a key"));
  EXPECT_THAT(errorOf(R"({"name": "x", "sms": "3"})"), HasSubstr("sms must be an integer"));
  EXPECT_THAT(errorOf(R"({"name": "x", "sms": 0})"), HasSubstr("sms must lie between 1 and 4096"));
  EXPECT_THAT(errorOf(R"({"name": "x", "compute_capability": "nine"})"),
              HasSubstr("compute_capability must look like"));
  EXPECT_THAT(errorOf(R"({"name": "x", "attributes": {"max_pich": 1}})"),
              HasSubstr("max_pich is not a device attribute"));
  EXPECT_THAT(errorOf(R"({"sms": 3})"), HasSubstr("name is missing"));
  EXPECT_THROW(modelsFor("no-such-model"), std::runtime_error);
}

}  // namespace
}  // namespace sonde::softgpu::model
