// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/module.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "platform/application_caller.h"
#include "platform/clock.h"
#include "softgpu/driver/env.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/fault_text.h"
#include "softgpu/memory/allocator.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::driver {
namespace {

std::atomic<uint32_t> moduleIds{0}, functionIds{0};

void reportModule(Module& module, uint32_t event) {
  if (!tools::wants(SONDE_INTEREST_RESOURCE)) return;
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  r.context = module.context()->handle();
  r.contextUid = module.context()->uid();
  r.deviceId = module.context()->device()->ordinal;
  r.handle = module.handle();
  r.id = module.id();
  r.moduleId = module.id();
  r.image = module.image().c_str();
  r.imageSize = module.image().size();
  tools::reportResource(r);
}

// The module's variables, as memory that came or is about to go.
void reportVariables(Module& module, bool released) {
  if (!tools::wants(SONDE_INTEREST_MEMORY)) return;
  for (const exec::GlobalInfo& variable : module.program().globals()) {
    SondeResource r{};
    // The compiler's own, such as the text of literals, are no variables of the program.
    if (variable.name.starts_with('$') || !module.global(variable.name, r.address, r.bytes)) continue;
    r.size = sizeof r;
    r.event = SONDE_RESOURCE_DEVICE_MEMORY;
    r.context = module.context()->handle();
    r.contextUid = module.context()->uid();
    r.deviceId = module.context()->device()->ordinal;
    r.memoryKind = variable.isManaged ? SONDE_MEMORY_MANAGED_STATIC : SONDE_MEMORY_DEVICE_STATIC;
    r.memoryOp = released ? 2 : 1;
    r.time = platform::nowNs();
    r.correlationId = currentCorrelation();
    r.name = variable.name.c_str();
    r.pc = platform::applicationCaller();
    tools::reportResource(r);
  }
}

// A time that was lost on the calling thread.
void reportLost(Context& context, uint32_t kind, uint64_t start, uint32_t correlation, const char* what) {
  SondeOverhead o{};
  o.size = sizeof o;
  o.kind = kind;
  o.start = start;
  o.end = platform::nowNs();
  o.correlationId = correlation ? correlation : currentCorrelation();
  o.contextUid = context.uid();
  o.deviceId = context.device()->ordinal;
  o.what = what;
  tools::reportOverhead(o);
}

}  // namespace

// --------------------------------------------------------------- function --

Function::Function(Module* module, uint32_t index, uint32_t id)
    : Object(kType), module_(module), index_(index), id_(id) {
  const auto& device = module->context()->device()->model;
  const uint32_t fixed = info().staticSharedBytes;
  maxDynamicShared.store(device.sharedPerBlock > fixed ? device.sharedPerBlock - fixed : 0);
}
Function::~Function() = default;

const exec::KernelInfo& Function::info() const { return module_->program().kernels()[index_]; }

CUresult Function::load(exec::CountLevel level, bool sourceLevel, uint32_t correlation) {
  const auto bit = static_cast<uint8_t>(1u << (static_cast<unsigned>(level) + (sourceLevel ? 4 : 0)));
  if (loaded_.load(std::memory_order_acquire) & bit) return CUDA_SUCCESS;
  const uint64_t start = platform::nowNs();
  const exec::CompileInfo compiled = exec::Engine::get().compile(module_->program(), index_, level, sourceLevel);
  Context& context = *module_->context();
  if (compiled.error) {
    say("kernel '" + exec::shownName(info().name) + "'" + ": " + compiled.message);
    return static_cast<CUresult>(compiled.error);
  }
  const uint8_t before = loaded_.fetch_or(bit, std::memory_order_acq_rel);
  if (compiled.compiled && tools::wants(SONDE_INTEREST_OVERHEAD)) {
    SondeOverhead o{};
    o.size = sizeof o;
    o.kind = level == exec::CountLevel::off && !sourceLevel ? SONDE_OVERHEAD_COMPILER : SONDE_OVERHEAD_INSTRUMENTATION;
    o.start = compiled.startNs;
    o.end = compiled.endNs;
    o.correlationId = correlation ? correlation : currentCorrelation();
    o.contextUid = context.uid();
    o.deviceId = context.device()->ordinal;
    o.what = info().name.c_str();
    o.cacheHit = compiled.diskCacheHit;
    o.bytes = compiled.ptxBytes;
    if (!compiled.cacheFile.empty()) o.cacheFile = compiled.cacheFile.c_str();
    o.cacheBytes = compiled.cacheBytes;
    tools::reportOverhead(o);
  }
  if (!before && !environment().eagerLoading && tools::wants(SONDE_INTEREST_OVERHEAD))
    reportLost(context, SONDE_OVERHEAD_LAZY_LOADING, start, correlation, info().name.c_str());
  if (!before && tools::wants(SONDE_INTEREST_RESOURCE)) tools::reportResource(describe());
  return CUDA_SUCCESS;
}

SondeResource Function::describe() const {
  Context& context = *module_->context();
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_FUNCTION_LOADED;
  r.context = context.handle();
  r.contextUid = context.uid();
  r.deviceId = context.device()->ordinal;
  r.handle = handle();
  r.id = id_;
  r.name = info().name.c_str();
  r.moduleId = module_->id();
  r.functionIndex = index_;
  return r;
}

// ----------------------------------------------------------------- module --

Module::Module(Context* context, std::shared_ptr<exec::Program> program, std::string image)
    : Object(kType),
      context_(context),
      program_(std::move(program)),
      image_(std::move(image)),
      id_(moduleIds.fetch_add(1) + 1),
      ptxName_("module_" + std::to_string(id_) + ".ptx") {
  functions_.resize(program_->kernels().size());
  for (uint32_t i = 0; i < functions_.size(); i++) kernelsByName_[program_->kernels()[i].name] = i;
  for (uint32_t i = 0; i < program_->globals().size(); i++) globalsByName_[program_->globals()[i].name] = i;
}
Module::~Module() = default;

Ref<Function> Module::function(uint32_t index) {
  std::lock_guard lock(mutex_);
  Ref<Function>& f = functions_[index];
  if (!f) {
    f = make<Function>(this, index, functionIds.fetch_add(1) + 1);
    HandleTable::publish(f.get());
  }
  return f;
}

std::vector<Ref<Function>> Module::loadedFunctions() {
  std::vector<Ref<Function>> found;
  std::lock_guard lock(mutex_);
  for (const Ref<Function>& f : functions_)
    if (f && f->loaded()) found.push_back(f);
  return found;
}

uint32_t Module::functionIdOf(uint32_t number) {
  const auto kernels = static_cast<uint32_t>(program_->kernels().size());
  const uint32_t kernel = program_->kernelOf(number);
  if (kernel < kernels) return function(kernel)->id();
  uint32_t id;
  {
    std::lock_guard lock(mutex_);
    auto [it, fresh] = deviceFunctionIds_.try_emplace(number, 0);
    if (!fresh) return it->second;
    id = it->second = functionIds.fetch_add(1) + 1;
  }
  if (tools::wants(SONDE_INTEREST_RESOURCE)) tools::reportResource(describeDeviceFunction(number, id));
  return id;
}

SondeResource Module::describeDeviceFunction(uint32_t number, uint32_t id) const {
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_FUNCTION_LOADED;
  r.context = context_->handle();
  r.contextUid = context_->uid();
  r.deviceId = context_->device()->ordinal;
  r.id = id;
  r.name = program_->functionName(number).data();  // of a std::string
  r.moduleId = id_;
  r.functionIndex = static_cast<uint32_t>(program_->kernels().size()) + number;
  return r;
}

std::vector<SondeResource> Module::describeFunctions() {
  std::vector<SondeResource> out;
  for (const Ref<Function>& f : loadedFunctions()) out.push_back(f->describe());
  std::lock_guard lock(mutex_);
  for (const auto& [number, id] : deviceFunctionIds_) out.push_back(describeDeviceFunction(number, id));
  return out;
}

Ref<Function> Module::function(const std::string& name) {
  auto it = kernelsByName_.find(name);
  return it == kernelsByName_.end() ? Ref<Function>() : function(it->second);
}

bool Module::global(const std::string& name, uint64_t& address, uint64_t& bytes, bool* managed) const {
  auto it = globalsByName_.find(name);
  if (it == globalsByName_.end()) return false;
  address = addresses_[it->second];
  bytes = program_->globals()[it->second].bytes;
  if (managed) *managed = program_->globals()[it->second].isManaged;
  return address != 0;
}

// All plain variables share one allocation, all managed ones another.
CUresult Module::placeGlobals() {
  auto& allocator = memory::Allocator::get();
  const auto globals = program_->globals();
  addresses_.assign(globals.size(), 0);
  for (const bool isManaged : {false, true}) {
    uint64_t total = 0;
    std::vector<uint64_t> offsets(globals.size(), 0);
    for (size_t i = 0; i < globals.size(); i++) {
      if (globals[i].isManaged != isManaged || globals[i].isExtern) continue;
      const uint64_t align = std::max<uint64_t>(256, globals[i].align);
      total = (total + align - 1) / align * align;
      offsets[i] = total;
      total += std::max<uint64_t>(1, globals[i].bytes);
    }
    if (total == 0) continue;
    if (isManaged) managed::beforeAllocation(*context_->device());
    memory::Allocation request;
    request.bytes = total;
    request.kind = isManaged ? memory::Kind::managedStatic : memory::Kind::deviceStatic;
    request.device = context_->device()->ordinal;
    request.contextUid = context_->uid();
    request.contextHandle = reinterpret_cast<uint64_t>(context_->handle());
    if (allocator.allocate(request) != memory::AllocError::none) return CUDA_ERROR_OUT_OF_MEMORY;
    allocations_.push_back(request.address);
    for (size_t i = 0; i < globals.size(); i++)
      if (globals[i].isManaged == isManaged && !globals[i].isExtern) addresses_[i] = request.address + offsets[i];
  }
  program_->bind(addresses_);
  for (uint64_t address : allocations_) {
    const auto a = allocator.find(address);
    if (a && a->kind == memory::Kind::managedStatic && !memory::ManagedMemory::get().add(a->address, a->bytes, true))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

void Module::release() {
  std::vector<Ref<Function>> functions;
  {
    std::lock_guard lock(mutex_);
    functions.swap(functions_);
    functions_.resize(functions.size());
  }
  for (auto& f : functions)
    if (f) HandleTable::retire(f.get());
  for (uint64_t address : allocations_) memory::Allocator::get().release(address);
  allocations_.clear();
}

namespace {

// The program's own line, as the PTX inside of a binary is nothing that a user has at hand.
std::string quoteLine(std::string_view text, ptx::SourcePos pos) {
  constexpr size_t kLongest = 160;
  for (uint32_t line = 1; line < pos.line; ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() > kLongest || pos.column == 0 || pos.column > text.size() + 1) return {};
  std::string mark;
  for (const char c : text.substr(0, pos.column - 1)) mark += c == '\t' ? '\t' : ' ';
  return "  " + std::string(text) + "\n  " + mark + "^";
}

}  // namespace

std::string JitLogs::prefix(size_t text) const {
  return text < names.size() && !names[text].empty() ? "ptx '" + names[text] + "'" : "ptx";
}

std::string JitLogs::shown() const {
  const size_t end = error.find('\n');
  if (error.empty()) return "no reason given";
  return error.substr(0, end) + (quoted.empty() ? "" : "\n" + quoted);
}

CUresult readImageFile(const char* path, std::string& bytes, JitLogs& logs) {
  logs.names = {path};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    logs.error += "cannot open '" + std::string(path) + "': " + std::strerror(errno) + "\n";
    return CUDA_ERROR_FILE_NOT_FOUND;
  }
  bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!bytes.empty()) return CUDA_SUCCESS;
  logs.error += "'" + std::string(path) + "' is empty, or no file\n";
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult makeProgram(const std::vector<std::string>& texts, const model::DeviceModel& device, JitLogs& logs,
                     std::shared_ptr<exec::Program>& out) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  exec::Program::LoadResult loaded = exec::Program::load(views, device);
  for (const auto& d : loaded.diagnostics) {
    const bool warning = d.severity == ptx::Diagnostic::Severity::warning;
    // What has no place is about all the texts.
    std::string line = logs.prefix(d.pos.line || texts.size() == 1 ? loaded.text : texts.size());
    if (d.pos.line) line += " line " + std::to_string(d.pos.line) + ", column " + std::to_string(d.pos.column);
    line += std::string(warning ? "; warning: " : "; error: ") + d.message + "\n";
    if (!warning && logs.error.empty() && d.pos.line && loaded.text < texts.size())
      logs.quoted = quoteLine(texts[loaded.text], d.pos);
    (warning ? logs.info : logs.error) += line;
  }
  switch (loaded.error) {
    case exec::LoadError::none: break;
    case exec::LoadError::invalidPtx: return CUDA_ERROR_INVALID_PTX;
    case exec::LoadError::unsupportedVersion: return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case exec::LoadError::targetTooNew: return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case exec::LoadError::unresolvedSymbol: return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    case exec::LoadError::outOfMemory: return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!loaded.program) return CUDA_ERROR_INVALID_PTX;
  out = std::move(loaded.program);
  return CUDA_SUCCESS;
}

CUresult loadModuleTexts(Context& context, std::vector<std::string> texts, JitLogs& logs, Ref<Module>& out) {
  const uint64_t start = platform::nowNs();
  std::shared_ptr<exec::Program> program;
  if (const CUresult e = makeProgram(texts, context.device()->model, logs, program)) {
    say("module refused: " + logs.shown());
    return e;
  }
  std::string image = std::move(texts.front());
  for (size_t i = 1; i < texts.size(); i++) image += texts[i];
  auto module = make<Module>(&context, std::move(program), std::move(image));
  if (const CUresult e = module->placeGlobals()) {
    module->release();
    return e;
  }
  if (!HandleTable::publish(module.get())) {
    module->release();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  {
    std::lock_guard lock(context.objects);
    context.modules.insert(module.get());
  }
  if (thread().runtimeDepth != 0 && tools::wants(SONDE_INTEREST_OVERHEAD))
    reportLost(context, SONDE_OVERHEAD_RUNTIME_MODULE_LOADING, start, 0, "");
  reportModule(*module, SONDE_RESOURCE_MODULE_LOADED);
  reportVariables(*module, false);
  if (environment().eagerLoading)
    for (uint32_t i = 0; i < module->program().kernels().size(); i++) module->function(i)->load(exec::CountLevel::off);
  out = std::move(module);
  return CUDA_SUCCESS;
}

CUresult loadModule(Context& context, const void* image, size_t bytes, JitLogs& logs, Ref<Module>& out) {
  LoadedImage loaded = readImage(image, bytes, context.device()->capability());
  if (loaded.error) {
    logs.fail(loaded.message);
    say("module refused: " + logs.shown());
    return loaded.error;
  }
  return loadModuleTexts(context, std::move(loaded.texts), logs, out);
}

void unloadModule(Module& module) {
  const Ref<Module> keep(&module);
  Context& context = *module.context();
  {
    std::lock_guard lock(context.objects);
    if (!context.modules.erase(&module)) return;
  }
  context.synchronize();  // queued work may use its functions and variables
  reportModule(module, SONDE_RESOURCE_MODULE_UNLOAD_STARTING);
  reportVariables(module, true);
  HandleTable::retire(&module);
  module.release();
}

CUresult findFunction(CUfunction handle, Ref<Function>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  switch (HandleTable::typeOf(handle)) {
    case Type::function: out = HandleTable::find<Function>(handle); break;
    case Type::kernel: return kernelFunction(reinterpret_cast<CUkernel>(handle), out);
    default: break;
  }
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace sonde::softgpu::driver
