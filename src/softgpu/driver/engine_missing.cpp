// SPDX-License-Identifier: Apache-2.0
//
// Stands in until the execution engine is built: loads nothing.
#include "softgpu/driver/cuda_api.h"
#include "softgpu/exec/engine.h"

namespace sonde::softgpu::exec {

Program::LoadResult Program::load(std::span<const std::string_view>, const model::DeviceModel&) {
  LoadResult r;
  r.error = LoadError::invalidPtx;
  r.diagnostics.push_back({ptx::Diagnostic::Severity::error, {}, "this build has no execution engine"});
  return r;
}

namespace {
class Missing final : public Engine {
 public:
  CompileInfo compile(const Program&, uint32_t, CountLevel) override {
    CompileInfo c;
    c.error = CUDA_ERROR_NOT_SUPPORTED;
    c.message = "this build has no execution engine";
    return c;
  }
  LaunchOutcome run(const LaunchRequest&) override {
    LaunchOutcome o;
    o.error = CUDA_ERROR_NOT_SUPPORTED;
    o.message = "this build has no execution engine";
    return o;
  }
  uint32_t occupancy(const Program&, uint32_t, uint32_t, uint64_t, const model::DeviceModel&) override { return 0; }
  void afterForkInChild() override {}
};
}  // namespace

Engine& Engine::get() {
  static Engine* engine = new Missing();
  return *engine;
}

}  // namespace sonde::softgpu::exec
