// SPDX-License-Identifier: Apache-2.0
//
// One PTX function to LLVM IR, for one warp at a time.
//
// Every PTX register is a stack slot that SROA turns into SSA: a scalar when
// the register is uniform, else a vector of 32 lanes. `mask_` is the 32-bit
// mask of the lanes that run the current block.
#pragma once

#include <array>
#include <bit>

#include "softgpu/exec/atomic_ops.h"
#include "softgpu/exec/bulk_job.h"
#include "softgpu/exec/mma_layout.h"
#include "softgpu/exec/texture.h"
#include "softgpu/jit/codegen.h"

namespace sonde::softgpu::jit {

// Spaces as the memory helpers know them.
enum class Space : uint8_t { generic = 0, shared = 1, local = 2 };

struct MemoryAccess {
  Space space = Space::generic;
  llvm::Value* address = nullptr;  // i64 (generic) or i32 (shared, local): scalar when uniform, else 32 lanes
  bool uniform = false;
  unsigned bytes = 4;  // of an element
  unsigned count = 1;  // elements of a vector access
  bool whole = false;  // two elements of 8 bytes that other blocks must see change at once

  // As the helpers take it, in one word.
  uint32_t described() const {
    const auto log2 = [](unsigned v) { return static_cast<uint32_t>(std::countr_zero(v)); };
    if (whole) return static_cast<uint32_t>(space) | log2(16) << 4 | 1 << 8;
    return static_cast<uint32_t>(space) | log2(bytes) << 4 | count << 8;
  }
};

// 32-bit words of a component of a parameter in registers, and of any parameter of a call.
inline uint32_t registerWords(const ptx::Variable& v) { return (ptx::bitsOf(v.type) + 31) / 32; }
inline uint32_t cellWords(const ptx::Variable& v) {
  if (v.space == ptx::StateSpace::reg) return registerWords(v) * v.vector;
  return static_cast<uint32_t>((v.sizeBytes + 3) / 4);
}
// Back edges of spin loops before the warp lets others run.
inline constexpr int kSpinBudget = 16;
// What an atomic instruction does, from its modifiers. Throws Unsupported.
exec::AtomicOp atomicOperation(const ptx::Instruction& in);

class FunctionCodegen final : public EmitContext {
 public:
  FunctionCodegen(KernelCodegen& kernel, llvm::IRBuilder<>& builder, uint32_t functionIndex, llvm::Function* target);
  void run();

  // EmitContext
  llvm::Value* source(const ptx::Operand& operand, ptx::ScalarType t) override;
  void store(const ptx::Operand& destination, llvm::Value* value, ptx::ScalarType t) override;
  llvm::Value* activeMask() override;
  llvm::Value* carry() override;
  void setCarry(llvm::Value* value) override;

 private:
  // set-up and control flow (function_codegen.cpp)
  void prologue();
  void markOwnCells();
  void definePending();
  void keepInMemory(llvm::Value* slot);
  void keepLongRegisters();
  void emitBlock(uint32_t index);
  void emitTerminator(uint32_t index, const ptx::Instruction* last);
  void emitBranch(uint32_t index, const ptx::Instruction& in);
  void emitIndexedBranch(uint32_t index, const ptx::Instruction& in);
  void storeReturns(llvm::Value* lanes);
  void emitLeave(uint32_t index, const ptx::Instruction& in);
  void jumpTo(uint32_t from, uint32_t to);
  void addPending(uint32_t block, llvm::Value* lanes);
  void enterChain(uint32_t from);
  void jumpToWaiting(uint32_t from);
  void afterCall();
  void emitChain();
  llvm::BasicBlock* rotateBlock();
  void emitFinish();
  void holdForMembers(uint32_t index);
  void beginCall(uint32_t index);
  bool watchesTime() const;
  // A branch whose other way is rare and may be slow: registers are kept for this one.
  void branchLikely(llvm::Value* condition, llvm::BasicBlock* likely, llvm::BasicBlock* rare);
  void spendTime(uint32_t instructions, const ptx::Instruction& in);
  void emitInstruction(const ptx::Instruction& in);
  void emitGuarded(const ptx::Instruction& in);
  bool isPure(const ptx::Instruction& in) const;
  bool emitOwn(const ptx::Instruction& in);  // instructions of this room
  [[noreturn]] void unsupported(const ptx::Instruction& in, const std::string& why) const;

  // values (function_codegen_values.cpp)
  llvm::Value* loadRegister(ptx::RegId reg, int component);
  llvm::Value* special(const ptx::Operand& operand, ptx::ScalarType t);
  llvm::Value* symbolAddress(const ptx::Operand& operand);
  llvm::Value* splat(llvm::Value* v) { return b.CreateVectorSplat(kWarpSize, v); }
  llvm::Value* toForm(llvm::Value* v);  // splat when the form at hand is 32 lanes
  llvm::Value* asType(llvm::Value* v, llvm::Type* scalarTo, bool isSigned);
  llvm::Value* bitsOf(llvm::Value* vectorOfBool);  // <32 x i1> -> i32
  llvm::Value* maskVector(llvm::Value* bits) {
    return b.CreateBitCast(bits, llvm::FixedVectorType::get(b.getInt1Ty(), kWarpSize));
  }
  llvm::Value* guardValue(const ptx::Instruction& in);  // i1 or <32 x i1>
  // Lanes that run the instruction, guard included, as i32.
  llvm::Value* effectMask() { return effect_ ? effect_ : mask_; }
  llvm::Value* warpField(size_t offset, llvm::Type* type, const char* name, bool invariant = true);
  llvm::Value* warpPointer(size_t offset);
  llvm::Value* popcount(llvm::Value* bits32);
  llvm::AllocaInst* entryAlloca(llvm::Type* type, const char* name, unsigned align = 64);
  llvm::Value* scratch(unsigned which);  // reusable 32-lane buffers for helper calls
  llvm::Value* spill(llvm::Value* vector, unsigned which);
  // Writes a vector of 32 lanes as is (no conversion) under block mask and guard.
  void storeLanes(const ptx::Operand& destination, llvm::Value* value, ptx::ScalarType t);

  // memory (memory_codegen.cpp)
  bool emitMemory(const ptx::Instruction& in);
  void emitLoad(const ptx::Instruction& in);
  void emitStore(const ptx::Instruction& in);
  void emitParamLoad(const ptx::Instruction& in);
  void emitParamStore(const ptx::Instruction& in);
  MemoryAccess resolveAddress(const ptx::Instruction& in, const ptx::Operand& address, ptx::StateSpace space,
                              unsigned bytes, unsigned count);
  void checkAccess(const ptx::Instruction& in, const MemoryAccess& access);
  llvm::Value* clusterAddress(llvm::Value* address);
  llvm::Value* scalarInRange(const MemoryAccess& a, llvm::Value* address, unsigned bytes);
  llvm::Value* scalarPointer(const MemoryAccess& a, llvm::Value* address);
  llvm::Value* genericAddresses(const MemoryAccess& a);  // <32 x i64>, space-relative
  unsigned joinElements(const ptx::Instruction& in, MemoryAccess& a);
  std::vector<llvm::Value*> loadElements(const MemoryAccess& a, llvm::Type* element, llvm::Value* p);
  std::vector<llvm::Value*> loadUniform(const MemoryAccess& a, llvm::Type* element);
  std::vector<llvm::Value*> loadVarying(const MemoryAccess& a, llvm::Type* element);
  llvm::Function* outlined(const MemoryAccess& a, llvm::Type* element, bool isStore);
  void storeUniform(const MemoryAccess& a, const std::vector<llvm::Value*>& values);
  void storeVarying(const MemoryAccess& a, const std::vector<llvm::Value*>& values);
  struct Halves {
    llvm::Value *low = nullptr, *high = nullptr;  // addresses of lanes 0 and 16
    llvm::Value* found = nullptr;                 // i1
    llvm::Value* same = nullptr;                  // i1: all lanes of a half at one address; null: never
  };
  Halves findHalves(const MemoryAccess& a, llvm::Value* lanes, bool allowSame);
  llvm::Value* lanesInRange(const MemoryAccess& a, llvm::Value* lanes);
  llvm::Value* rangeLimit(Space space, unsigned shift, unsigned slack);
  llvm::Value* hostBase(Space space);
  llvm::Value* localLaneOffsets();
  llvm::Value* concat(llvm::Value* x, llvm::Value* y);
  llvm::Value* lanePointers(const MemoryAccess& a);
  void markPosition(const ptx::Instruction& in);
  void compilerFence();
  // param cells: words of 32 lanes
  struct Cells {
    std::vector<llvm::Value*> words;  // pointers to <32 x i32>
    llvm::Value* array = nullptr;     // or one array of such words
    uint32_t bytes = 0;
    bool oneBlock = false;  // nothing outside one block uses them
  };
  Cells* cellsOf(const ptx::Operand& operand, uint32_t* offset);
  llvm::Value* cellPointer(const Cells& cells, uint32_t word);
  llvm::Value* readCells(const Cells& cells, uint32_t offset, llvm::Type* element);
  void writeCells(const Cells& cells, uint32_t offset, llvm::Value* lanes, llvm::Type* element);

  // warp-level operations, barriers, atomics (warp_codegen.cpp, atomic_codegen.cpp)
  bool emitWarp(const ptx::Instruction& in);
  void emitShuffle(const ptx::Instruction& in);
  void emitVote(const ptx::Instruction& in);
  void emitMatch(const ptx::Instruction& in);
  void emitRedux(const ptx::Instruction& in);
  void emitElect(const ptx::Instruction& in);
  void emitBarrier(const ptx::Instruction& in);
  llvm::Value* permute(llvm::Value* lanes, llvm::Value* index);
  bool emitAtomic(const ptx::Instruction& in);
  bool emitUniformAtomic(const ptx::Instruction& in, exec::AtomicOp op, const MemoryAccess& a);
  llvm::Value* callAtomic(const MemoryAccess& a, exec::AtomicOp op, ptx::ScalarType t, llvm::Value* addresses,
                          llvm::Value* x, llvm::Value* y, bool wanted, unsigned width);
  void emitAtomic128(const ptx::Instruction& in, exec::AtomicOp op);
  bool emitAddressOp(const ptx::Instruction& in);  // cvta, isspacep, mapa, getctarank, mov of addresses
  void emitClusterAddressOp(const ptx::Instruction& in);
  bool emitMisc(const ptx::Instruction& in);
  void emitAlloca(const ptx::Instruction& in);
  bool emitAsyncCopy(const ptx::Instruction& in);
  bool emitMbarrier(const ptx::Instruction& in);
  // bulk copies and asynchronous stores (bulk_codegen.cpp)
  bool emitBulk(const ptx::Instruction& in);
  void emitBulkCopy(const ptx::Instruction& in);
  void emitAsyncStore(const ptx::Instruction& in);
  void emitTensorMap(const ptx::Instruction& in);
  void bulkRow(unsigned row, llvm::Value* lanesOfIt);
  void bulkAddress(unsigned row, const ptx::Instruction& in, const ptx::Operand& o, ptx::StateSpace space);
  llvm::Value* mapAddress(const ptx::Operand& o);
  void callBulk(const exec::BulkJob& job);
  // matrix instructions (matrix.cpp)
  bool emitMatrix(const ptx::Instruction& in);
  void emitMma(const ptx::Instruction& in);
  void multiplyDoubles(const ptx::Operand& d, const ptx::Operand& a, const ptx::Operand& right, const ptx::Operand& c);
  void emitMatrixRows(const ptx::Instruction& in);
  void emitWmmaMemory(const ptx::Instruction& in);
  llvm::Value* fragmentBuffer(unsigned which);  // room for a matrix operand's registers
  llvm::Value* spillFragment(const ptx::Operand& o, exec::MatrixType t, unsigned which);
  void storeFragment(const ptx::Operand& o, exec::MatrixType t, llvm::Value* buffer);
  llvm::Value* matrixJob(const exec::MatrixJob& job);
  // textures and surfaces (texture.cpp)
  bool emitTexture(const ptx::Instruction& in);
  void emitSample(const ptx::Instruction& in);
  void emitSurface(const ptx::Instruction& in);
  llvm::Value* textureHandles(const ptx::Operand& o);
  void textureCoordinates(const ptx::Operand& o, unsigned count, llvm::Value* rows);
  llvm::Value* textureRow(llvm::Value* buffer, unsigned row, uint64_t bytes);
  llvm::Value* textureJob(const exec::TextureJob& job);
  // calls (call_codegen.cpp)
  void emitCall(const ptx::Instruction& in);
  llvm::Value* stepCall(llvm::Value* callee, llvm::Value* tokens, llvm::Value* args, uint32_t argWords,
                        llvm::Value* results, uint32_t resultWords);
  llvm::Value* callDirect(llvm::Value* callee, llvm::Value* lanes, llvm::Value* args, llvm::Value* results);

  // counting (counter_codegen.cpp)
  bool counting() const { return k_.level >= exec::CountLevel::instructions; }
  bool countingMemory() const { return k_.level >= exec::CountLevel::requests; }
  bool countingCaches() const { return k_.level >= exec::CountLevel::caches; }
  bool countingSites() const { return k_.sourceLevel; }
  CounterSite* siteOf(const ptx::Instruction& in);  // null: not the source-level variant
  void addSite(uint32_t instruction, uint32_t warps, uint32_t threads);
  llvm::Value* accessBase();  // i32: first slot of the current access; constant 0: not counted
  llvm::Value* idealSectors(const Halves& h, unsigned size);
  void addToAccess(uint32_t which, llvm::Value* amount64);
  void countDiverged(const ptx::Instruction& in, llvm::Value* diverged);
  void countBlock(uint32_t index);
  void addToSlot(uint32_t slot, llvm::Value* amount64);
  void countGuarded(const ptx::Instruction& in, llvm::Value* lanes);
  void countStatic(const ptx::Instruction& in, uint32_t warps, uint32_t threads);
  bool isReduction(const ptx::Instruction& in) const;
  uint32_t accessKind(const ptx::Instruction& in) const;
  bool servedByL2(const ptx::Instruction& in) const;
  void cacheRows(llvm::Value* low, llvm::Value* high, llvm::Value* span64);
  void countByHelper(const MemoryAccess& a);
  void countUniform(const MemoryAccess& a);
  void countHalves(const MemoryAccess& a, const Halves& h);
  void countScattered(const MemoryAccess& a);
  void countGenericGlobal(const ptx::Instruction& in, unsigned bytes);
  void countRaw(exec::RawCounter counter, llvm::Value* amount64) {
    addToSlot(static_cast<uint32_t>(counter), amount64);
  }

  KernelCodegen& k_;
  const uint32_t index_;
  llvm::Function* target_;
  const bool isKernel_;
  Flow flow_;
  llvm::Value* warp_ = nullptr;
  llvm::Value* entryMask_ = nullptr;
  llvm::Value* argsArray_ = nullptr;
  llvm::Value* resultsArray_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  std::vector<llvm::BasicBlock*> runBlock_, chainBlock_;
  llvm::BasicBlock* finish_ = nullptr;
  std::vector<std::array<llvm::Value*, 4>> registers_;
  llvm::Value* carrySlot_ = nullptr;
  std::vector<llvm::Value*> pending_;
  llvm::Value* live_ = nullptr;      // slot: lanes still in the function
  llvm::Value* returned_ = nullptr;  // slot: lanes that came to ret (functions only)
  llvm::BasicBlock* rotate_ = nullptr;
  // Slots, where .sync instructions wait: lanes that are held at one, lanes that
  // may go on from there, and who was held when the chain last came to its end.
  llvm::Value *held_ = nullptr, *released_ = nullptr, *heldBefore_ = nullptr;
  llvm::Value* budget_ = nullptr;    // slot: back edges of spin loops left
  llvm::Value* time_ = nullptr;      // slot: WarpState::timeBudget while the function runs; null: not needed
  llvm::Value* maskSlot_ = nullptr;  // slot: mask_ of the block at hand
  llvm::Value* mask_ = nullptr;      // i32
  llvm::Value* effect_ = nullptr;    // i32, when a varying guard is in force
  llvm::Value* guard_ = nullptr;     // i1 or <32 x i1>, when a guard selects the results
  uint32_t block_ = 0;
  bool inOutlined_ = false;
  std::vector<bool> everRead_;   // registers that some instruction reads
  std::vector<uint32_t> sites_;  // of each instruction: its place in CounterPlan::sites + 1
  llvm::Value* outlinedAccess_ = nullptr;
  const ptx::Instruction* current_ = nullptr;
  std::map<size_t, llvm::Value*> fields_;
  std::vector<llvm::Value*> scratch_;
  std::array<llvm::Value*, 4> fragments_{};
  llvm::Value* bulkRows_ = nullptr;                               // arguments of bulk copies
  std::map<uint32_t, llvm::Value*> callArguments_, callResults_;  // by their number of words
  std::vector<Cells> varCells_, argCells_, resultCells_;
  std::vector<uint32_t> localOffsets_;
  uint32_t localFrame_ = 0;
  llvm::Value* localFrameBase_ = nullptr;
};

}  // namespace sonde::softgpu::jit
