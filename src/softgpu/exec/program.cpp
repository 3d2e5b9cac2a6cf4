// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "platform/clock.h"
#include "ptx/addressed_params.h"
#include "ptx/check.h"
#include "ptx/link.h"
#include "ptx/parser.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/fault_text.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/fidelity.h"
#include "softgpu/exec/grid_sync_ptx.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/jit/codegen_tokens.h"
#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {

namespace {

constexpr int32_t kErrorInvalidPtx = 218;

bool isGlobalSpace(ptx::StateSpace s) { return s == ptx::StateSpace::global || s == ptx::StateSpace::const_; }

LoadError errorOf(const std::vector<ptx::Diagnostic>& diagnostics) {
  for (const auto& d : diagnostics)
    if (d.severity != ptx::Diagnostic::Severity::warning) return LoadError::invalidPtx;
  return LoadError::none;
}

// Where a directive that the parser took stands: the first line that begins with it.
ptx::SourcePos placeOf(std::string_view text, std::string_view directive) {
  uint32_t line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t word = text.find_first_not_of(" \t", at);
    if (word < end && text.substr(word).starts_with(directive)) return {line, static_cast<uint32_t>(word - at + 1)};
    at = end + 1;
  }
  return {1, 1};
}

// libcudadevrt of CUDA 11 has PTX, which asks the vendor's driver for functions of other names (cnp…). The functions
// that it defines are there without it.
bool isDeviceRuntime(const ptx::Module& module) {
  bool defines = false, asks = false;
  for (const auto& f : module.functions) {
    defines |= f.hasBody && f.name == "cudaMemcpyAsync";
    asks |= !f.hasBody && f.name == "cnpSetLastError";
  }
  return defines && asks;
}

// For `sonde run --fidelity`: one piece for each kernel, whole even when
// several processes write.
void reportFidelity(const ptx::Module& module, uint32_t function) {
  static const char* path = std::getenv("SONDE_FIDELITY");
  if (!path || !*path) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  const std::string text = fidelityReport(module, function);
  if (write(file, text.data(), text.size()) < 0) {
    // The report is a courtesy.
  }
  close(file);
}

}  // namespace

Program::LoadResult Program::load(std::span<const std::string_view> texts, const model::DeviceModel& device) {
  LoadResult result;
  std::vector<ptx::LinkInput> inputs;
  uint64_t bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    bytes += texts[i].size();
    result.text = i;
    ptx::ParseResult parsed = ptx::parse(texts[i]);
    for (auto& d : parsed.diagnostics) result.diagnostics.push_back(d);
    if (!parsed.ok()) {
      result.error = LoadError::invalidPtx;
      return result;
    }
    const ptx::Module& m = parsed.module;
    if (texts.size() > 1 && isDeviceRuntime(m)) continue;
    // Newer compilers of the same release write 9.x; what is new in it is refused by name.
    if (m.versionMajor > 9) {
      result.diagnostics.push_back(
          {ptx::Diagnostic::Severity::error, placeOf(texts[i], ".version"),
           fmt::format("PTX version {}.{} is newer than 9.x", m.versionMajor, m.versionMinor)});
      result.error = LoadError::unsupportedVersion;
      return result;
    }
    if (m.target > device.ccMajor * 10 + device.ccMinor && !texts[i].starts_with(kForNewerDevice)) {
      result.diagnostics.push_back(
          {ptx::Diagnostic::Severity::error, placeOf(texts[i], ".target"),
           fmt::format("target sm_{} is above the device's compute capability {}.{}: compile for sm_{}{}, or "
                       "choose a newer device with SONDE_DEVICES",
                       m.target, device.ccMajor, device.ccMinor, device.ccMajor, device.ccMinor)});
      result.error = LoadError::targetTooNew;
      return result;
    }
    const auto complaints = ptx::check(m);
    result.diagnostics.insert(result.diagnostics.end(), complaints.begin(), complaints.end());
    if (!complaints.empty()) {
      result.error = LoadError::invalidPtx;
      return result;
    }
    inputs.push_back(
        {std::move(parsed.module), texts.size() > 1 ? fmt::format("input {}", i + 1) : std::string("ptx")});
  }
  auto named = [&](bool defined) {
    for (const auto& input : inputs)
      for (const auto& f : input.module.functions)
        if (f.hasBody == defined && (f.name == "cudaCGSynchronize" || f.name == "cudaCGGetIntrinsicHandle"))
          return true;
    return false;
  };
  if (named(false) && !named(true)) inputs.push_back({ptx::parse(kGridSyncPtx).module, "the device runtime"});
  if (inputs.empty()) {
    result.error = LoadError::invalidPtx;
    result.diagnostics.push_back({ptx::Diagnostic::Severity::error, {}, "no PTX text"});
    return result;
  }
  ptx::Module module;
  std::vector<std::string> missing;
  // The linker also makes calls of an alias calls of what it stands for.
  if (inputs.size() == 1 && inputs[0].module.aliases.empty()) {
    module = std::move(inputs[0].module);
    for (const auto& f : module.functions)
      if (!f.hasBody && !f.isKernel) missing.push_back(f.name);
    for (const auto& v : module.variables)
      if (v.isExtern && isGlobalSpace(v.space)) missing.push_back(v.name);
  } else {
    ptx::LinkResult linked = ptx::link(std::move(inputs));
    for (auto& d : linked.diagnostics) result.diagnostics.push_back(d);
    if (!linked.ok()) {
      result.error = LoadError::unresolvedSymbol;
      return result;
    }
    module = std::move(linked.module);
    missing = linked.unresolvedFunctions;
    missing.insert(missing.end(), linked.unresolvedVariables.begin(), linked.unresolvedVariables.end());
  }
  ptx::moveAddressedParameters(module);
  std::erase_if(missing, [](const std::string& n) { return isDeviceFunction(n); });
  // A declaration that nothing uses is no error.
  std::erase_if(missing, [&](const std::string& n) {
    for (const auto& f : module.functions)
      for (const auto& in : f.body)
        if (in.op == ptx::Opcode::call && !in.operands.empty() && in.operands[0].ref == ptx::Operand::Ref::function &&
            module.functions[in.operands[0].refId].name == n)
          return false;
    for (const auto& v : module.variables)
      if (v.name == n) return false;
    return true;
  });
  if (!missing.empty()) {
    for (const std::string& n : missing)
      result.diagnostics.push_back(
          {ptx::Diagnostic::Severity::error, {}, "'" + n + "' is declared but defined nowhere"});
    result.error = LoadError::unresolvedSymbol;
    return result;
  }
  if (result.error = errorOf(result.diagnostics); result.error != LoadError::none) return result;
  result.program = std::make_shared<ProgramImpl>(std::move(module), jit::digest(texts), bytes);
  return result;
}

constexpr uint32_t kRegistersPerSm = 65536;  // since compute capability 3.0

ProgramImpl::ProgramImpl(ptx::Module module, std::string hash, uint64_t bytes)
    : module_(std::move(module)), hash_(std::move(hash)), ptxBytes_(bytes) {
  for (const ptx::Function& f : module_.functions) launches_ = launches_ || (!f.hasBody && isLaunchFunction(f.name));
  addresses_.assign(module_.variables.size() + 1, 0);
  for (uint32_t v = 0; v < module_.variables.size(); ++v) {
    const ptx::Variable& var = module_.variables[v];
    if (!isGlobalSpace(var.space)) continue;
    globals_.push_back({var.name, var.sizeBytes, std::max(1u, var.align), var.space == ptx::StateSpace::const_,
                        var.isManaged, var.isExtern, var.isVisible});
    globalVariables_.push_back(v);
  }
  uint64_t constBytes = 0;
  for (const GlobalInfo& g : globals_)
    if (g.isConstant) constBytes += g.bytes;
  for (uint32_t f = 0; f < module_.functions.size(); ++f) {
    const ptx::Function& fn = module_.functions[f];
    if (!fn.isKernel || !fn.hasBody) continue;
    KernelInfo k;
    k.name = fn.name;
    for (size_t p = 0; p < fn.params.size(); ++p)
      k.params.push_back({fn.params[p].name, fn.paramOffsets[p], static_cast<uint32_t>(fn.params[p].sizeBytes),
                          std::max(1u, fn.params[p].align)});
    k.paramBytes = fn.paramBytes;
    const jit::KernelNeeds needs = jit::kernelNeeds(module_, f);
    k.registersPerThread = std::clamp(needs.registers + 6, 8u, 255u);
    if (fn.hints.maxnreg) k.registersPerThread = std::min(k.registersPerThread, fn.hints.maxnreg);
    k.staticSharedBytes = needs.staticSharedBytes;
    k.localBytesPerThread = needs.localBytes;
    k.constBytes = static_cast<uint32_t>(constBytes);
    k.usesBarrier = needs.usesBarrier;
    const auto& h = fn.hints;
    if (h.reqntid[0]) {
      k.requiredBlock = {h.reqntid[0], std::max(1u, h.reqntid[1]), std::max(1u, h.reqntid[2])};
      k.maxThreadsPerBlock = k.requiredBlock[0] * k.requiredBlock[1] * k.requiredBlock[2];
    } else if (h.maxntid[0]) {
      k.maxThreadsPerBlock = std::min(1024u, h.maxntid[0] * std::max(1u, h.maxntid[1]) * std::max(1u, h.maxntid[2]));
    }
    if (h.reqnctapercluster[0])
      k.requiredCluster = {h.reqnctapercluster[0], std::max(1u, h.reqnctapercluster[1]),
                           std::max(1u, h.reqnctapercluster[2])};
    // An assembler keeps to what a block of the declared size leaves each of its threads.
    if (h.reqntid[0] || h.maxntid[0]) {
      const uint64_t warps = uint64_t{(std::max(1u, k.maxThreadsPerBlock) + 31) / 32} * std::max(1u, h.minnctapersm);
      const uint32_t fit = static_cast<uint32_t>(kRegistersPerSm / (warps * 32) / 8 * 8);
      k.registersPerThread = std::min(k.registersPerThread, std::max(8u, fit));
    }
    k.ptxVersion = module_.versionMajor * 10 + module_.versionMinor;
    k.ptxTarget = module_.target;
    kernels_.push_back(std::move(k));
    kernelFunctions_.push_back(f);
  }
}

void ProgramImpl::bind(std::span<const uint64_t> addresses) {
  for (size_t g = 0; g < globals_.size() && g < addresses.size(); ++g) addresses_[globalVariables_[g]] = addresses[g];
  for (size_t g = 0; g < globals_.size() && g < addresses.size(); ++g)
    writeInitialValues(module_.variables[globalVariables_[g]], addresses[g]);
}

uint64_t ProgramImpl::symbolAddress(const std::string& name) const {
  for (uint32_t v = 0; v < module_.variables.size(); ++v)
    if (module_.variables[v].name == name) return addresses_[v];
  for (uint32_t f = 0; f < module_.functions.size(); ++f)
    if (module_.functions[f].name == name) return jit::functionToken(f);
  return 0;
}

void ProgramImpl::writeInitialValues(const ptx::Variable& v, uint64_t address) const {
  if (v.isExtern || v.sizeBytes == 0) return;
  std::byte* to = memory::AddressSpace::get().deviceView(address);
  std::memset(to, 0, v.sizeBytes);
  const uint64_t element = std::max<uint64_t>(1, ptx::bitsOf(v.type) / 8);
  uint64_t at = 0;
  for (const ptx::Initializer& init : v.init) {
    if (at + element > v.sizeBytes) break;
    uint64_t bits = init.bits;
    if (!init.symbol.empty()) bits = symbolAddress(init.symbol) + static_cast<uint64_t>(init.offset);
    if (init.masked) bits = bits >> init.maskShift & 0xff;
    std::memcpy(to + at, &bits, std::min<uint64_t>(element, 8));
    at += element;
  }
}

void ProgramImpl::locate(uint64_t position, Fault& fault) const {
  const auto f = static_cast<uint32_t>(position >> 32), i = static_cast<uint32_t>(position);
  if (f >= module_.functions.size() || i >= module_.functions[f].body.size()) return;
  const ptx::Instruction& in = module_.functions[f].body[i];
  fault.pos = in.pos;
  if (in.loc >= module_.locations.size()) return;
  const ptx::Location& loc = module_.locations[in.loc];
  for (const auto& file : module_.files)
    if (file.index == loc.file) fault.file = file.path;
  fault.fileLine = loc.line;
}

std::string ProgramImpl::place(uint64_t position) const {
  Fault at;
  locate(position, at);
  std::string text = fmt::format("PTX line {}", at.pos.line);
  if (!at.file.empty()) text += fmt::format(", {}:{}", at.file, at.fileLine);
  return text;
}

std::shared_ptr<const jit::CompiledKernel> ProgramImpl::compiled(uint32_t kernel, CountLevel level, bool sourceLevel,
                                                                 CompileInfo* info) const {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    auto& s = code_[{kernel, level, sourceLevel}];
    if (!s) s = std::make_shared<Slot>();
    slot = s;
  }
  std::lock_guard lock(slot->mutex);
  if (!slot->code && slot->error.empty()) {
    jit::CompileRequest request{&module_, kernelFunctions_[kernel], level, sourceLevel, hash_};
    const uint64_t start = platform::nowNs();
    jit::CompileResult made = jit::compileKernel(request, allHelpers());
    reportFidelity(module_, kernelFunctions_[kernel]);
    slot->code = made.kernel;
    slot->error = made.error;
    if (info) {
      info->compiled = made.kernel != nullptr;
      info->diskCacheHit = made.kernel && made.kernel->fromCache;
      info->startNs = start;
      info->endNs = platform::nowNs();
      info->ptxBytes = ptxBytes_;
      if (made.kernel) {
        info->cacheFile = made.kernel->cacheFile;
        info->cacheBytes = made.kernel->cacheBytes;
      }
    }
  }
  if (!slot->code && info) {
    info->error = kErrorInvalidPtx;
    info->message = slot->error;
  }
  return slot->code;
}

void recordFault(GridRun& grid, const WarpState& warp, int32_t error, uint32_t lanes, uint64_t address,
                 const char* what) {
  std::lock_guard lock(grid.mutex);
  grid.failed.store(true, std::memory_order_relaxed);
  const uint64_t block = warp.cta->block;
  if (grid.outcome.error != 0 && block >= grid.outcomeBlock) return;
  grid.outcomeBlock = block;
  Fault fault;
  fault.address = address;
  const uint32_t who = lanes ? lanes : warp.initialMask;
  const auto lane = static_cast<uint32_t>(who ? __builtin_ctz(who) : 0);
  for (int i = 0; i < 3; ++i) {
    fault.block[static_cast<size_t>(i)] = warp.ctaid[i];
    fault.thread[static_cast<size_t>(i)] = static_cast<uint32_t>(warp.tid[i][lane]);
  }
  grid.program->locate(warp.position, fault);
  const std::string& kernel = grid.program->kernels()[grid.request->kernel].name;
  std::string where =
      fmt::format("kernel '{}', block ({},{},{}), {} ({},{},{}), PTX line {}", shownName(kernel), fault.block[0],
                  fault.block[1], fault.block[2], lanes ? "thread" : "the warp of thread", fault.thread[0],
                  fault.thread[1], fault.thread[2], fault.pos.line);
  if (!fault.file.empty())
    where += fmt::format(" ({}:{})", fault.file, fault.fileLine);
  else if (kernel.starts_with("_Z"))
    where += " (compile with -lineinfo to see the source's)";
  const bool hasAddress = error == kErrorIllegalAddress || error == kErrorMisalignedAddress || error == kErrorInvalidPc;
  // The other kinds say themselves what is wrong with the address.
  const bool unmapped = error == kErrorIllegalAddress && (what == kWriteTo || what == kReadOf);
  grid.outcome.error = error;
  grid.outcome.message =
      hasAddress ? fmt::format("{} 0x{:x}{}: {}", what, address, unmapped ? ", " + whereIs(address) : "", where)
                 : fmt::format("{}: {}", what, where);
  grid.outcome.fault = std::move(fault);
}

}  // namespace sonde::softgpu::exec
