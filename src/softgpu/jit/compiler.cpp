// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/compiler.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/LEB128.h>
#include <llvm/Support/SHA256.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "softgpu/exec/check_options.h"
#include "softgpu/exec/time_limit.h"
#include "softgpu/jit/codegen.h"
#include "softgpu/jit/object_cache.h"

namespace sonde::softgpu::jit {

namespace {

class Backend {
 public:
  static Backend& get() {
    static Backend* backend = new Backend();  // code must outlive static destructors
    return *backend;
  }

  TargetFeatures features;
  std::string cpu, featureText;
  std::string startError;
  llvm::orc::LLJIT* jit = nullptr;

  std::unique_ptr<llvm::TargetMachine> machine(llvm::CodeGenOptLevel level) {
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple_, error);
    if (!target) return nullptr;
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    options.EmitStackSizeSection = true;  // for frameBytes
    return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
        triple_, cpu, featureText, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, true));
  }

  // Symbols of the helpers, once.
  llvm::orc::JITDylib* runtime(std::span<const RuntimeSymbol> helpers) {
    std::lock_guard lock(mutex_);
    if (runtime_) return runtime_;
    auto dylib = jit->createJITDylib("runtime");
    if (!dylib) {
      llvm::consumeError(dylib.takeError());
      return nullptr;
    }
    llvm::orc::SymbolMap map;
    for (const RuntimeSymbol& s : helpers)
      map[jit->mangleAndIntern(s.name)] = {llvm::orc::ExecutorAddr::fromPtr(s.address),
                                           llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    if (auto e = dylib->define(llvm::orc::absoluteSymbols(std::move(map)))) {
      llvm::consumeError(std::move(e));
      return nullptr;
    }
    return runtime_ = &*dylib;
  }

  std::string newName() { return "k" + std::to_string(next_++); }

 private:
  Backend() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    // The first one's time grows with the square of a kernel's size: minutes for those of Thrust and CUB. The second
    // moves arithmetic over the memory accesses behind it, so that all that they load is alive at once.
    auto& options = llvm::cl::getRegisteredOptions();
    for (const char* option : {"disable-x86-domain-reassignment", "disable-machine-sink"})
      if (const auto found = options.find(option); found != options.end())
        found->second->addOccurrence(0, found->first(), "true");
    triple_ = llvm::sys::getProcessTriple();
    cpu = llvm::sys::getHostCPUName().str();
    auto host = llvm::sys::getHostCPUFeatures();
    const char* limit = std::getenv("SONDE_JIT_NO_AVX512");
    const bool no512 = limit && *limit && *limit != '0';
    if (no512) cpu = "x86-64-v3";
    std::vector<std::string> list;
    for (const auto& f : host) {
      std::string name = f.first().str();
      // f16 is computed with the same instructions everywhere: those that are tested.
      const bool on = f.second && name != "avx512fp16" && !(no512 && name.find("avx512") != std::string::npos) &&
                      !(no512 && name == "evex512");
      list.push_back((on ? "+" : "-") + name);
    }
    std::sort(list.begin(), list.end());
    for (const auto& f : list) featureText += (featureText.empty() ? "" : ",") + f;
    auto has = [&](const char* f) { return host.lookup(f); };
    features.avx512 = !no512 && has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
    const char* nan = std::getenv("SONDE_JIT_HOST_NAN");
    features.canonicalNan = !(nan && *nan && *nan != '0');

    llvm::orc::JITTargetMachineBuilder builder{llvm::Triple(triple_)};
    builder.setCPU(cpu);
    builder.addFeatures(list);
    auto made = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(builder)).create();
    if (!made) {
      startError = llvm::toString(made.takeError());
      return;
    }
    jit = made->release();
  }

  std::string triple_;
  std::mutex mutex_;
  llvm::orc::JITDylib* runtime_ = nullptr;
  std::atomic<uint64_t> next_{0};
};

size_t countInstructions(const llvm::Module& m) {
  size_t n = 0;
  for (const auto& f : m)
    for (const auto& block : f) n += block.size();
  return n;
}

// Short on purpose: the whole default pipeline costs twice the code generation.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, bool quick) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager f;
  f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  f.addPass(llvm::EarlyCSEPass(false));
  f.addPass(llvm::SimplifyCFGPass());
  if (!quick) {
    f.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1)));
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
    f.addPass(llvm::EarlyCSEPass(true));
    f.addPass(llvm::SimplifyCFGPass());
  }
  f.addPass(llvm::ADCEPass());
  llvm::ModulePassManager m;
  m.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(f)));
  m.run(module, modules);
}

// The frames of all functions of an object together: its section of (address, size as LEB128).
uint64_t frameBytes(llvm::StringRef bytes) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object) {
    llvm::consumeError(object.takeError());
    return 0;
  }
  uint64_t sum = 0;
  for (const auto& section : (*object)->sections()) {
    auto name = section.getName();
    auto contents = section.getContents();
    if (!name || !contents) {
      llvm::consumeError(name.takeError());
      llvm::consumeError(contents.takeError());
      continue;
    }
    if (*name != ".stack_sizes") continue;
    const auto* p = reinterpret_cast<const uint8_t*>(contents->begin());
    const auto* end = reinterpret_cast<const uint8_t*>(contents->end());
    while (end - p > 8) {
      unsigned used = 0;
      sum += llvm::decodeULEB128(p + 8, &used, end);
      p += 8 + used;
    }
  }
  return sum;
}

std::string metaOf(const CompiledKernel& k) {
  std::string s = std::to_string(k.mayYield + 2 * k.spins + 4 * k.waitsForChildren + 8 * k.lanesWait) + " " +
                  std::to_string(k.recursive) + " " + std::to_string(k.paramCopyBytes) + " " +
                  std::to_string(k.staticSharedBytes) + " " + std::to_string(k.localBytes) + " " +
                  std::to_string(k.stackBytes) + "\n";
  return s + k.counters.serialize();
}

bool parseMeta(const std::string& text, CompiledKernel& k) {
  int yields = 0, recursive = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d %d %u %u %u %u\n%n", &yields, &recursive, &k.paramCopyBytes, &k.staticSharedBytes,
                  &k.localBytes, &k.stackBytes, &used) != 6)
    return false;
  k.mayYield = yields & 1;
  k.spins = yields & 2;
  k.waitsForChildren = yields & 4;
  k.lanesWait = yields & 8;
  k.recursive = recursive;
  return CounterPlan::parse(text.substr(static_cast<size_t>(used)), k.counters);
}

std::string loadCode(Backend& backend, std::unique_ptr<llvm::MemoryBuffer> object,
                     std::span<const RuntimeSymbol> helpers, CompiledKernel& kernel) {
  llvm::orc::JITDylib* runtime = backend.runtime(helpers);
  if (!runtime) return "the helpers of the run time could not be defined";
  auto dylib = backend.jit->createJITDylib(backend.newName());
  if (!dylib) return llvm::toString(dylib.takeError());
  dylib->addToLinkOrder(*runtime);
  auto processSymbols =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(backend.jit->getDataLayout().getGlobalPrefix());
  if (processSymbols)
    dylib->addGenerator(std::move(*processSymbols));
  else
    llvm::consumeError(processSymbols.takeError());
  llvm::orc::JITDylib* held = &*dylib;
  kernel.code = std::shared_ptr<void>(held, [jit = backend.jit](void* d) {
    llvm::consumeError(jit->getExecutionSession().removeJITDylib(*static_cast<llvm::orc::JITDylib*>(d)));
  });
  if (auto e = backend.jit->addObjectFile(*held, std::move(object))) return llvm::toString(std::move(e));
  auto symbol = backend.jit->lookup(*held, "kernel");
  if (!symbol) return llvm::toString(symbol.takeError());
  kernel.entry = symbol->toPtr<exec::WarpFunction>();
  return {};
}

}  // namespace

std::string digest(std::span<const std::string_view> parts) {
  llvm::SHA256 hash;
  for (std::string_view p : parts) {
    const uint64_t n = p.size();
    hash.update(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(&n), sizeof n));
    hash.update(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(p.data()), p.size()));
  }
  std::string out;
  for (uint8_t byte : hash.final()) {
    static const char hex[] = "0123456789abcdef";
    out += hex[byte >> 4];
    out += hex[byte & 15];
  }
  return out;
}

CompileResult compileKernel(const CompileRequest& request, std::span<const RuntimeSymbol> helpers) {
  CompileResult result;
  Backend& backend = Backend::get();
  if (!backend.jit) {
    result.error = "the code generator could not start: " + backend.startError;
    return result;
  }
  auto kernel = std::make_shared<CompiledKernel>();
  const std::string& name = request.module->functions[request.function].name;

  std::string key;
  if (!request.sourceHash.empty()) {
    const std::string level = std::to_string(static_cast<int>(request.level)) + "/" +
                              std::to_string(exec::kAbiVersion) + (backend.features.canonicalNan ? "/n" : "") +
                              (request.sourceLevel ? "/s" : "") + (exec::checks().any() ? "/c" : "") +
                              (exec::kernelTimeLimit() ? "/t" : "");
    const std::string build = ObjectCache::buildIdentity();
    const std::string_view parts[] = {request.sourceHash, name, level, backend.cpu, backend.featureText, build};
    key = digest(parts);
    std::string meta, object;
    if (ObjectCache::get().load(key, meta, object) && parseMeta(meta, *kernel)) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, name);
      if (loadCode(backend, std::move(buffer), helpers, *kernel).empty()) {
        kernel->fromCache = true;
        kernel->cacheFile = ObjectCache::get().fileOf(key);
        kernel->cacheBytes = ObjectCache::fileBytes(meta, object);
        result.kernel = std::move(kernel);
        return result;
      }
      *kernel = {};
    }
  }

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  try {
    KernelCodegen codegen(context, *request.module, request.function, request.level, request.sourceLevel,
                          backend.features);
    module = codegen.generate();
    kernel->counters = codegen.counters;
    kernel->mayYield = codegen.layout.mayYield;
    kernel->spins = codegen.layout.spins;
    kernel->waitsForChildren = codegen.layout.waitsForChildren;
    kernel->lanesWait = codegen.layout.lanesWait;
    kernel->paramCopyBytes = codegen.layout.paramCopyBytes;
    kernel->recursive = codegen.layout.recursive;
    kernel->staticSharedBytes = codegen.layout.staticSharedBytes;
    kernel->localBytes = codegen.layout.localBytes;
  } catch (const std::exception& e) {
    result.error = e.what();
    return result;
  }
  const size_t size = countInstructions(*module);
  const bool quick = size > 120'000;
  auto machine = backend.machine(quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default);
  if (!machine) {
    result.error = "LLVM has no code generator for this machine";
    return result;
  }
  module->setTargetTriple(machine->getTargetTriple().str());
  module->setDataLayout(machine->createDataLayout());
  const char* dump = std::getenv("SONDE_JIT_DUMP");
  if (dump && *dump == '1') module->print(llvm::errs(), nullptr);
  {
    std::string text;
    llvm::raw_string_ostream out(text);
    if (llvm::verifyModule(*module, &out)) {
      result.error = "internal error in the code for '" + name + "': " + text;
      return result;
    }
  }
  optimize(*module, *machine, quick);
  if (dump && *dump == '2') module->print(llvm::errs(), nullptr);
  llvm::SmallVector<char, 0> bytes;
  {
    llvm::raw_svector_ostream out(bytes);
    llvm::legacy::PassManager emit;
    if (machine->addPassesToEmitFile(emit, out, nullptr, llvm::CodeGenFileType::ObjectFile, true)) {
      result.error = "LLVM cannot emit code for this machine";
      return result;
    }
    emit.run(*module);
  }
  if (dump && *dump == '3') {
    llvm::raw_fd_ostream out(2, false);
    if (const char* path = std::getenv("SONDE_JIT_DUMP_FILE")) {
      std::error_code ec;
      llvm::raw_fd_ostream file(path, ec);
      file.write(bytes.data(), bytes.size());
    }
  }
  // Helpers take up to 64 KiB, matrix products most.
  const uint64_t frames = frameBytes(llvm::StringRef(bytes.data(), bytes.size()));
  kernel->stackBytes = static_cast<uint32_t>(128 * 1024 + std::min<uint64_t>(frames, 64u << 20));
  if (kernel->recursive) kernel->stackBytes += 2u << 20;
  if (!key.empty()) {
    ObjectCache& cache = ObjectCache::get();
    kernel->cacheBytes = cache.store(key, metaOf(*kernel), std::string_view(bytes.data(), bytes.size()));
    if (kernel->cacheBytes != 0) kernel->cacheFile = cache.fileOf(key);
  }
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(bytes.data(), bytes.size()), name);
  if (std::string error = loadCode(backend, std::move(buffer), helpers, *kernel); !error.empty()) {
    result.error = "the code for '" + name + "' could not be loaded: " + error;
    return result;
  }
  result.kernel = std::move(kernel);
  return result;
}

KernelNeeds kernelNeeds(const ptx::Module& module, uint32_t function) {
  KernelNeeds needs;
  const KernelLayout layout = layoutOf(module, function);
  needs.staticSharedBytes = layout.staticSharedBytes;
  needs.localBytes = layout.localBytes;
  for (uint32_t f : layout.functions) {
    const ptx::Function& fn = module.functions[f];
    if (!fn.hasBody) continue;
    for (const auto& in : fn.body) needs.usesBarrier |= in.op == ptx::Opcode::bar || in.op == ptx::Opcode::barrier;
    const Flow flow(fn, fn.isKernel);
    needs.registers = std::max(needs.registers, flow.maxLiveRegisters());
    needs.mayYield |= flow.mayYield;
  }
  return needs;
}

}  // namespace sonde::softgpu::jit
