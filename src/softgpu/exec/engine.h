// SPDX-License-Identifier: Apache-2.0
//
// What the driver asks of the execution engine: make a program out of PTX,
// compile a kernel of it, run a grid. Nothing of LLVM shows here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/types.h"
#include "softgpu/exec/counters.h"
#include "softgpu/model/device_model.h"

namespace sonde::softgpu::exec {

struct ParamInfo {
  std::string name;
  uint32_t offset = 0, size = 0, align = 1;  // in the packed parameter buffer
};

struct KernelInfo {
  std::string name;  // mangled
  std::vector<ParamInfo> params;
  uint32_t paramBytes = 0;
  uint32_t registersPerThread = 0;  // estimate from live 32-bit values; deterministic
  uint32_t staticSharedBytes = 0;
  uint32_t localBytesPerThread = 0;
  uint32_t constBytes = 0;
  uint32_t maxThreadsPerBlock = 1024;  // .maxntid/.reqntid
  std::array<uint32_t, 3> requiredBlock{0, 0, 0};
  std::array<uint32_t, 3> requiredCluster{0, 0, 0};
  bool usesBarrier = false, usesCooperativeSync = false;
  uint32_t ptxVersion = 0, ptxTarget = 0;  // 90, 90
};

struct GlobalInfo {
  std::string name;
  uint64_t bytes = 0, align = 1;
  bool isConstant = false, isManaged = false, isExtern = false, isVisible = false;
};

enum class LoadError : uint8_t {
  none,
  invalidPtx,          // CUDA_ERROR_INVALID_PTX
  unsupportedVersion,  // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
  targetTooNew,        // CUDA_ERROR_NO_BINARY_FOR_GPU
  unresolvedSymbol,    // linking several texts
  outOfMemory,
};

// How PTX begins that runs although it is for a newer device: a fat binary has it beside machine code for this one. It
// keeps its target, which programs ask for (CU_FUNC_ATTRIBUTE_PTX_VERSION) to launch it as it was compiled.
inline constexpr std::string_view kForNewerDevice = "/* in place of machine code */";

// A module (or several linked ones), not yet compiled. Immutable after bind();
// safe to use from many threads.
class Program {
 public:
  struct LoadResult {
    std::shared_ptr<Program> program;  // null on error
    LoadError error = LoadError::none;
    std::vector<ptx::Diagnostic> diagnostics;
    size_t text = 0;  // which of the texts the last ones are about
  };
  // Several texts are linked: symbols are merged as a linker would.
  static LoadResult load(std::span<const std::string_view> ptxTexts, const model::DeviceModel& device);

  virtual ~Program() = default;
  virtual std::span<const KernelInfo> kernels() const = 0;
  virtual std::span<const GlobalInfo> globals() const = 0;  // module-scope .global and .const variables
  // Functions of the module, kernels and others, as InstructionCount numbers them.
  virtual std::string_view functionName(uint32_t function) const = 0;
  // Its place in kernels(); kernels().size(): not a kernel.
  virtual uint32_t kernelOf(uint32_t function) const = 0;
  // Its kernels may call the device's run time for launches.
  virtual bool launchesOnDevice() const = 0;
  // Functions whose address a global initialiser or `mov` takes work too; the
  // engine gives them addresses by itself.
  //
  // Tells where each global lies (device addresses, same order as globals())
  // and writes the initial values there through the device view. Once.
  virtual void bind(std::span<const uint64_t> addresses) = 0;
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// What a compilation cost, for overhead records.
struct CompileInfo {
  bool compiled = false;  // false: was there already
  bool diskCacheHit = false;
  uint64_t startNs = 0, endNs = 0;
  uint64_t ptxBytes = 0;
  std::string cacheFile;  // the code's file in the disk cache; empty: none
  uint64_t cacheBytes = 0;
  int32_t error = 0;    // CUresult
  std::string message;  // unsupported instruction and its line
};

// Values by [instance * kRawCounterCount + counter]; instances are SMs, and
// for the L2 and DRAM counters slices. Grown as needed: to the SMs, at
// CountLevel::caches to the greater of both.
struct CounterValues {
  uint32_t instances = 0;
  std::vector<uint64_t> values;
};

// Reads the counters of a grid from another thread while it runs. Values of
// one grid only grow, and are exact once run() has returned; those of a grid
// that has not started are 0. Thread-safe.
class CounterMonitor {
 public:
  CounterValues read() const {
    std::lock_guard lock(mutex_);
    return source_ ? source_() : last_;
  }
  // The engine's side.
  void attach(std::function<CounterValues()> source) {
    std::lock_guard lock(mutex_);
    source_ = std::move(source);
  }
  void settle(CounterValues values) {
    std::lock_guard lock(mutex_);
    source_ = nullptr;
    last_ = std::move(values);
  }

 private:
  mutable std::mutex mutex_;
  std::function<CounterValues()> source_;
  CounterValues last_;
};

// One PTX instruction of a source-level run, summed over the grid. Only those
// that were executed. Text belongs to the program.
struct InstructionCount {
  uint32_t function = 0, index = 0;  // in the program's module; in the function's body
  std::string_view file;             // from .loc; empty: there is none
  uint32_t line = 0;                 // in `file`
  uint32_t ptxLine = 0;              // in the PTX text
  uint8_t recordClass = 0;           // CUpti_ActivityInstructionClass
  bool isBranch = false;
  uint8_t access = 0;  // memory access: 1 reads, 2 writes, 3 atomic with, 4 without a result, 5 copies to shared memory
  bool cached = false;
  uint16_t accessBytes = 0;            // of one thread
  uint64_t executed = 0, threads = 0;  // warps and lanes, whatever the guard says
  uint64_t onThreads = 0;              // lanes whose guard holds
  uint64_t diverged = 0;
  // Requests that hit the space and the lanes in them; sectors, or passes over
  // the banks, and how many would do for the bytes asked for.
  struct Traffic {
    uint64_t executed = 0, threads = 0, transactions = 0, ideal = 0;
  } global, shared;
};

class DeviceLaunches;

struct LaunchRequest {
  const Program* program = nullptr;
  uint32_t kernel = 0;  // index into kernels()
  Dim3 grid, block, cluster{0, 0, 0};
  uint32_t dynamicSharedBytes = 0;
  std::span<const std::byte> params;  // packed, paramBytes long
  uint64_t gridId = 0;
  bool cooperative = false;
  // Cooperative launches: device address of 8 zeroed bytes that grid-wide
  // barriers use; kernels find it in %envreg1 (high) and %envreg2 (low).
  uint64_t gridWorkspace = 0;
  CountLevel count = CountLevel::off;
  CounterValues* counters = nullptr;  // added to
  CounterMonitor* monitor = nullptr;  // optional, when counting
  // Not null: the kernel's source-level variant runs, at `count` or
  // CountLevel::requests, whichever is deeper; receives the counts, by function
  // and instruction.
  std::vector<InstructionCount>* instructions = nullptr;
  // Where the grid's threads launch (device_launch.h). Null: they cannot.
  DeviceLaunches* launches = nullptr;
  const model::DeviceModel* device = nullptr;
  std::span<const uint32_t> sms;  // the multiprocessors that its blocks go to; empty: all
  uint32_t deviceOrdinal = 0;
  uint64_t smClockMHz = 0;
  uint64_t heapBytes = 8u << 20, printfBytes = 1u << 20, stackBytes = 1024;
  // Device printf: called with finished lines in block order, on the thread
  // that runs the grid.
  std::function<void(std::string_view)> print;
  // Addresses outside the device's window that a kernel may use all the same
  // (registered host memory). Null: none.
  std::function<bool(uint64_t address, uint64_t bytes)> hostAddressAllowed;
};

struct Fault {
  uint64_t address = 0;
  ptx::SourcePos pos;
  std::string file;  // from .loc when there is one
  uint32_t fileLine = 0;
  std::array<uint32_t, 3> block{}, thread{};
};

struct LaunchOutcome {
  int32_t error = 0;    // CUresult: 0, 700 illegal address, 716 misaligned, 710 assert, 715 illegal instruction, 702
                        // timeout for a deadlock, 719 launch failed (trap)
  std::string message;  // one sentence with kernel, block, thread, PTX line
  Fault fault;
  uint64_t startNs = 0, endNs = 0;  // real time of the run
  uint64_t cycles = 0;              // cost model
};

// The engine: worker threads and the code cache. Process-wide.
class Engine {
 public:
  static Engine& get();
  virtual ~Engine() = default;

  // Makes the kernel ready to run at this count level. Idempotent, thread-safe.
  virtual CompileInfo compile(const Program& program, uint32_t kernel, CountLevel level, bool sourceLevel = false) = 0;
  // Runs a grid to its end on the engine's threads and the calling one. Any
  // number of calls may be in flight.
  virtual LaunchOutcome run(const LaunchRequest& request) = 0;
  // Blocks of this kernel that fit on one SM.
  virtual uint32_t occupancy(const Program& program, uint32_t kernel, uint32_t blockThreads, uint64_t dynamicShared,
                             const model::DeviceModel& device) = 0;
  // After fork() in the child the threads are gone: start anew at next use.
  virtual void afterForkInChild() = 0;
};

// Opcode by opcode, what the engine does with it: for docs/COVERAGE.md and
// `sonde run --fidelity`.
enum class Fidelity : uint8_t { exact, withinBound, orderDependent, unsupported };

}  // namespace sonde::softgpu::exec
