// SPDX-License-Identifier: Apache-2.0
//
// The class of every opcode of the table, as records name it. An opcode without
// a row here fails.
#include "softgpu/jit/instruction_class.h"

#include <cupti.h>
#include <gtest/gtest.h>

#include <set>

#include "ptx/opcodes.h"
#include "ptx/parser.h"

namespace sonde::softgpu::jit {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::ScalarType;
using ptx::StateSpace;
using enum ScalarType;

constexpr auto kF32 = CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_32, kF64 = CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_64,
               kF16 = CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_16, kInt = CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTEGER,
               kConvert = CUPTI_ACTIVITY_INSTRUCTION_CLASS_BIT_CONVERSION,
               kControl = CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONTROL_FLOW,
               kGlobal = CUPTI_ACTIVITY_INSTRUCTION_CLASS_GLOBAL, kShared = CUPTI_ACTIVITY_INSTRUCTION_CLASS_SHARED,
               kLocal = CUPTI_ACTIVITY_INSTRUCTION_CLASS_LOCAL, kGeneric = CUPTI_ACTIVITY_INSTRUCTION_CLASS_GENERIC,
               kSurface = CUPTI_ACTIVITY_INSTRUCTION_CLASS_SURFACE,
               kConstant = CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONSTANT,
               kTexture = CUPTI_ACTIVITY_INSTRUCTION_CLASS_TEXTURE,
               kGlobalAtomic = CUPTI_ACTIVITY_INSTRUCTION_CLASS_GLOBAL_ATOMIC,
               kSharedAtomic = CUPTI_ACTIVITY_INSTRUCTION_CLASS_SHARED_ATOMIC,
               kSurfaceAtomic = CUPTI_ACTIVITY_INSTRUCTION_CLASS_SURFACE_ATOMIC,
               kThreads = CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTER_THREAD_COMMUNICATION,
               kBarrier = CUPTI_ACTIVITY_INSTRUCTION_CLASS_BARRIER,
               kOther = CUPTI_ACTIVITY_INSTRUCTION_CLASS_MISCELLANEOUS;

struct Row {
  const char* opcode;
  CUpti_ActivityInstructionClass expected;
  std::vector<ScalarType> types;
  StateSpace space = StateSpace::none;
  std::vector<Mod> mods;
};

const StateSpace kNo = StateSpace::none, kG = StateSpace::global, kS = StateSpace::shared;

const Row kRows[] = {
    // Arithmetic goes by its type.
    {"abs", kInt, {s32}},
    {"abs", kF32, {f32}},
    {"abs", kF64, {f64}},
    {"abs", kF16, {f16}},
    {"add", kInt, {u32}},
    {"add", kInt, {s64}},
    {"add", kF32, {f32}},
    {"add", kF32, {f32x2}},
    {"add", kF64, {f64}},
    {"add", kF16, {f16x2}},
    {"add", kF16, {bf16}},
    {"addc", kInt, {u32}},
    {"and", kInt, {b32}},
    {"and", kInt, {pred}},
    {"bfe", kInt, {u32}},
    {"bfi", kInt, {b32}},
    {"bfind", kInt, {u32}},
    {"bmsk", kInt, {b32}},
    {"brev", kInt, {b32}},
    {"clz", kInt, {b32}},
    {"cnot", kInt, {b32}},
    {"copysign", kF32, {f32}},
    {"copysign", kF64, {f64}},
    {"cos", kF32, {f32}},
    {"div", kInt, {u32}},
    {"div", kF32, {f32}},
    {"div", kF64, {f64}},
    {"dp2a", kInt, {u32, u32}},
    {"dp4a", kInt, {s32, s32}},
    {"ex2", kF32, {f32}},
    {"ex2", kF16, {f16}},
    {"fma", kF32, {f32}},
    {"fma", kF64, {f64}},
    {"fma", kF16, {bf16x2}},
    {"fns", kInt, {b32}},
    {"lg2", kF32, {f32}},
    {"lop3", kInt, {b32}},
    {"mad", kInt, {u32}},
    {"mad", kF32, {f32}},
    {"mad24", kInt, {s32}},
    {"madc", kInt, {u32}},
    {"max", kInt, {s32}},
    {"max", kF32, {f32}},
    {"min", kF64, {f64}},
    {"min", kInt, {u16x2}},
    {"mul", kInt, {u32}},
    {"mul", kF32, {f32}},
    {"mul24", kInt, {u32}},
    {"neg", kInt, {s32}},
    {"neg", kF32, {f32}},
    {"not", kInt, {b32}},
    {"or", kInt, {b32}},
    {"popc", kInt, {b64}},
    {"prmt", kInt, {b32}},
    {"rcp", kF32, {f32}},
    {"rcp", kF64, {f64}},
    {"rem", kInt, {u32}},
    {"rsqrt", kF32, {f32}},
    {"sad", kInt, {u32}},
    {"selp", kInt, {b32}},
    {"selp", kF32, {f32}},
    {"set", kInt, {u32, s32}},
    {"set", kF32, {u32, f32}},  // what is compared, not what is written
    {"set", kInt, {f32, s32}},
    {"setp", kInt, {u32}},
    {"setp", kF32, {f32}},
    {"setp", kF64, {f64}},
    {"shf", kInt, {b32}},
    {"shl", kInt, {b32}},
    {"shr", kInt, {s64}},
    {"sin", kF32, {f32}},
    {"slct", kInt, {u32, s32}},
    {"slct", kF32, {f32, s32}},
    {"sqrt", kF32, {f32}},
    {"sqrt", kF64, {f64}},
    {"sub", kInt, {u32}},
    {"sub", kF64, {f64}},
    {"subc", kInt, {u32}},
    {"szext", kInt, {u32}},
    {"tanh", kF32, {f32}},
    {"tanh", kF16, {f16x2}},
    {"testp", kF32, {f32}},
    {"xor", kInt, {b32}},
    // Video instructions are of integers.
    {"vabsdiff", kInt, {u32, u32, u32}},
    {"vabsdiff2", kInt, {u32, u32, u32}},
    {"vabsdiff4", kInt, {u32, u32, u32}},
    {"vadd", kInt, {s32, s32, s32}},
    {"vadd2", kInt, {s32, s32, s32}},
    {"vadd4", kInt, {s32, s32, s32}},
    {"vavrg2", kInt, {s32, s32, s32}},
    {"vavrg4", kInt, {s32, s32, s32}},
    {"vmad", kInt, {s32, s32, s32}},
    {"vmax", kInt, {s32, s32, s32}},
    {"vmax2", kInt, {s32, s32, s32}},
    {"vmax4", kInt, {s32, s32, s32}},
    {"vmin", kInt, {s32, s32, s32}},
    {"vmin2", kInt, {s32, s32, s32}},
    {"vmin4", kInt, {s32, s32, s32}},
    {"vset", kInt, {u32, u32}},
    {"vset2", kInt, {u32, u32, u32}},
    {"vset4", kInt, {u32, u32, u32}},
    {"vshl", kInt, {u32, u32, u32}},
    {"vshr", kInt, {u32, u32, u32}},
    {"vsub", kInt, {s32, s32, s32}},
    {"vsub2", kInt, {s32, s32, s32}},
    {"vsub4", kInt, {s32, s32, s32}},
    // Products of matrices by the type of the sums.
    {"mma", kF32, {f32, f16, f16, f32}},
    {"mma", kF16, {f16, f16, f16, f16}},
    {"mma", kInt, {s32, s8, s8, s32}},
    {"mma", kF64, {f64, f64, f64, f64}},
    {"wmma", kF32, {f32, f32}, kNo, {Mod::mma}},
    {"wmma", kGlobal, {f16}, kG, {Mod::load}},
    {"wmma", kShared, {f32}, kS, {Mod::store}},
    {"wmma", kGeneric, {f16}, kNo, {Mod::load}},
    {"wgmma", kF32, {f32, bf16, bf16}, kNo, {Mod::mma_async}},
    {"wgmma", kOther, {}, kNo, {Mod::fence}},
    {"wgmma", kOther, {}, kNo, {Mod::commit_group}},
    {"tcgen05", kOther, {}, kNo, {Mod::alloc}},
    // Addresses.
    {"cvta", kInt, {u64}, kG},
    {"getctarank", kInt, {u32}},
    {"isspacep", kInt, {}, kG},
    {"istypep", kInt, {}},
    {"mapa", kInt, {u32}},
    {"cvt", kConvert, {f32, s32}},
    {"cvt", kConvert, {f16, f32}},
    {"cvt", kConvert, {u8, u32}},
    // Memory goes by its space.
    {"ld", kGlobal, {f32}, kG},
    {"ld", kShared, {f32}, kS},
    {"ld", kShared, {f32}, StateSpace::sharedCluster},
    {"ld", kLocal, {u32}, StateSpace::local},
    {"ld", kConstant, {u32}, StateSpace::const_},
    {"ld", kConstant, {u64}, StateSpace::param},
    {"ld", kConstant, {u64}, StateSpace::paramEntry},
    {"ld", kGeneric, {u32}},
    {"ldu", kGlobal, {u32}, kG},
    {"st", kGlobal, {f32}, kG},
    {"st", kShared, {f32}, kS},
    {"st", kLocal, {u32}, StateSpace::local},
    {"st", kLocal, {u32}, StateSpace::param},  // of a call
    {"st", kGeneric, {u32}},
    {"atom", kGlobalAtomic, {u32}, kG},
    {"atom", kSharedAtomic, {u32}, kS},
    {"atom", kGlobalAtomic, {u32}},
    {"red", kGlobalAtomic, {f32}, kG},
    {"red", kSharedAtomic, {u32}, kS},
    {"prefetch", kGlobal, {}, kG},
    {"prefetch", kGeneric, {}},
    {"prefetchu", kGeneric, {}},
    {"discard", kGlobal, {}, kG},
    {"applypriority", kGlobal, {}, kG},
    {"cp", kGlobal, {}, kS, {Mod::async, Mod::ca}},
    {"cp", kOther, {}, kNo, {Mod::async, Mod::commit_group}},
    {"cp", kOther, {}, kNo, {Mod::async, Mod::wait_group}},
    {"cp", kOther, {}, kNo, {Mod::async, Mod::wait_all}},
    {"cp", kBarrier, {b64}, kS, {Mod::async, Mod::mbarrier, Mod::arrive}},
    {"ldmatrix", kShared, {b16}, kS},
    {"stmatrix", kShared, {b16}, kS},
    {"multimem", kGlobal, {f32}, kG, {Mod::ld_reduce}},
    {"multimem", kGlobalAtomic, {f32}, kG, {Mod::red}},
    {"tex", kTexture, {f32, s32}},
    {"tld4", kTexture, {f32, f32}},
    {"txq", kTexture, {b32}},
    {"suld", kSurface, {b32}},
    {"sust", kSurface, {b32}},
    {"suq", kSurface, {b32}},
    {"sured", kSurfaceAtomic, {u32}},
    // Control flow.
    {"bra", kControl, {}},
    {"brx", kControl, {}},
    {"brkpt", kControl, {}},
    {"call", kControl, {}},
    {"exit", kControl, {}},
    {"ret", kControl, {}},
    {"trap", kControl, {}},
    // Between threads.
    {"activemask", kThreads, {b32}},
    {"elect", kThreads, {}},
    {"match", kThreads, {b32}},
    {"movmatrix", kThreads, {b16}},
    {"redux", kThreads, {s32}},
    {"shfl", kThreads, {b32}},
    {"vote", kThreads, {pred}},
    {"bar", kBarrier, {}},
    {"bar", kBarrier, {}, kNo, {Mod::warp, Mod::sync}},
    {"barrier", kBarrier, {}},
    {"mbarrier", kBarrier, {b64}},
    // The rest.
    {"alloca", kOther, {u64}},
    {"clusterlaunchcontrol", kOther, {}},
    {"createpolicy", kOther, {b64}},
    {"fence", kOther, {}},
    {"griddepcontrol", kOther, {}},
    {"membar", kOther, {}},
    {"mov", kOther, {b32}},
    {"mov", kOther, {f32}},
    {"nanosleep", kOther, {u32}},
    {"pmevent", kOther, {}},
    {"setmaxnreg", kOther, {u32}},
    {"stackrestore", kOther, {u64}},
    {"stacksave", kOther, {u64}},
    {"tensormap", kOther, {b1024}},
};

TEST(InstructionClass, OfEveryOpcode) {
  std::set<Opcode> seen;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.opcode);
    ptx::Instruction in;
    in.op = ptx::opcodeFromName(row.opcode);
    ASSERT_NE(Opcode::invalid, in.op);
    seen.insert(in.op);
    in.types = row.types;
    in.space = row.space;
    in.mods = row.mods;
    in.operands.resize(2);
    EXPECT_EQ(static_cast<int>(row.expected), static_cast<int>(recordClass(in, true)));
    // A class of memory is counted as load or store, and so on.
    const auto kind = classify(in).kind;
    const bool memory = (row.expected >= kGlobal && row.expected <= kSurfaceAtomic);
    EXPECT_EQ(memory, kind == exec::RawCounter::inst_compute_ld_st);
    EXPECT_EQ(row.expected == kOther || row.expected == kBarrier, kind == exec::RawCounter::inst_misc);
    EXPECT_EQ(row.expected == kThreads, kind == exec::RawCounter::inst_inter_thread);
    EXPECT_EQ(row.expected == kControl, kind == exec::RawCounter::inst_control);
    EXPECT_EQ(row.expected == kConvert, kind == exec::RawCounter::inst_bit_convert);
    EXPECT_EQ(row.expected == kInt, kind == exec::RawCounter::inst_integer);
    EXPECT_EQ(row.expected == kF16, kind == exec::RawCounter::inst_fp_16);
    EXPECT_EQ(row.expected == kF32, kind == exec::RawCounter::inst_fp_32);
    EXPECT_EQ(row.expected == kF64, kind == exec::RawCounter::inst_fp_64);
  }
  for (uint16_t op = 1; op < static_cast<uint16_t>(Opcode::count_); ++op)
    EXPECT_EQ(1u, seen.count(static_cast<Opcode>(op))) << "no row for " << ptx::name(static_cast<Opcode>(op));
}

TEST(InstructionClass, OfParameters) {
  const auto parsed = ptx::parse(R"(.version 8.0
.target sm_90
.address_size 64
.func (.param .b32 r) called(.param .b32 x)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [x];
  st.param.b32 [r], %r1;
  ret;
}
.visible .entry k(.param .b32 y)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.b32 %r1, [y];
  mov.u64 %rd1, y;
  ld.param.b32 %r1, [%rd1];
  {
  .param .b32 a;
  .param .b32 q;
  st.param.b32 [a], %r1;
  call (q), called, (a);
  ld.param.b32 %r2, [q];
  }
  ret;
}
)");
  ASSERT_TRUE(parsed.ok());
  const auto classes = [](const ptx::Function& f) {
    std::vector<int> out;
    for (const auto& in : f.body) out.push_back(static_cast<int>(recordClass(in, f.isKernel)));
    return out;
  };
  EXPECT_EQ(classes(parsed.module.functions[0]), (std::vector<int>{kLocal, kLocal, kControl}));
  EXPECT_EQ(classes(parsed.module.functions[1]),
            (std::vector<int>{kConstant, kOther, kConstant, kLocal, kControl, kLocal, kControl}));
}

}  // namespace
}  // namespace sonde::softgpu::jit
