// SPDX-License-Identifier: Apache-2.0
// Sums over the source-level records of a launch are the events of that launch:
// for the kernels whose events are worked out by hand, for those that were
// measured on hardware, for random ones, and where kernels launch kernels.
#include <fstream>
#include <random>
#include <sstream>

#include "source_level.h"

namespace sonde::test {
namespace {

struct Body {
  const char* name;
  const char* text;
};
void PrintTo(const Body& b, std::ostream* out) { *out << b.name; }

class SumsOfBodies : public SourceSums, public ::testing::WithParamInterface<Body> {};

TEST_P(SumsOfBodies, EqualTheEventsOfTheSameLaunch) {
  enableAll();
  const CUdeviceptr p = buffer(1 << 20), q = buffer(1 << 20);
  CUfunction f = function(kernel(GetParam().text, ".shared .align 16 .b8 s[4096];\n"), "k");
  expectSumsOf(f, 4, 256, {p, q});
  expectSumsOf(f, 5, 200, {p, q});  // a warp of eight lanes
  expectSumsOf(f, 1, 1, {p, q});
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, SumsOfBodies,
    ::testing::Values(
        Body{"Straight", "add.u32 %r5, %r3, 1;"},
        Body{"Predicated", "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 add.u32 %r6, %r3, 1;"},
        Body{"OddLanes", "and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L; add.u32 %r6, %r3, 1;\nL:"},
        Body{"Loop", "and.b32 %r5, %r1, 31;\nL: setp.eq.u32 %p1, %r5, 0; sub.u32 %r5, %r5, 1; @!%p1 bra L;"},
        Body{"EmptyBranch", "setp.lt.u32 %p1, %r1, 7; @%p1 bra L;\nL:"},
        Body{"Stride8",
             "shl.b32 %r5, %r3, 3; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %rd3, %rd1; "
             "ld.global.u32 %r6, [%rd3]; st.global.u32 [%rd3], %r6;"},
        Body{"Generic",
             "mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd7, %rd5, %rd6;"
             "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; add.u64 %rd8, %rd1, %rd6;"
             "selp.b64 %rd9, %rd7, %rd8, %p1; st.u32 [%rd9], %r1; ld.u32 %r6, [%rd9];"},
        Body{"Atomics",
             "atom.global.add.u32 %r5, [%rd1], 1; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd3, %rd2;"
             "st.global.u32 [%rd3], %r5; red.global.add.u32 [%rd1], 1;"},
        Body{"SharedConflicts",
             "and.b32 %r5, %r1, 31; shl.b32 %r5, %r5, 4; mov.u32 %r6, s; add.u32 %r6, %r6, %r5;"
             "st.shared.u32 [%r6], %r5; ld.shared.u64 %rd5, [%r6]; ld.shared.u8 %r7, [%r6];"},
        Body{"Broadcast", "mov.u32 %r6, s; ld.shared.u32 %r7, [%r6]; ld.global.u32 %r8, [%rd1];"}),
    [](const auto& info) { return info.param.name; });

class SumsOfMeasured : public SourceSums, public ::testing::WithParamInterface<const char*> {};

TEST_P(SumsOfMeasured, EqualTheEventsOfTheSameLaunch) {
  static const std::string ptx = [] {
    std::ifstream in(SONDE_MICROKERNELS);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }();
  ASSERT_NE("", ptx);
  int major = 0;
  CU_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  if (major < 9) GTEST_SKIP() << "their PTX is for compute capability 9.0";
  enableAll();
  const std::string name = GetParam();
  const bool integers = name == "local_array" || name.find("atomic") != std::string::npos || name == "red_same";
  const CUdeviceptr p = buffer(1 << 20), q = buffer(1 << 20);
  std::vector<uint32_t> words(1 << 18);
  for (uint32_t i = 0; i < words.size(); ++i) {
    const float x = static_cast<float>((i * 7) & 15);
    words[i] = (i * 7) & 15;
    if (!integers) std::memcpy(&words[i], &x, sizeof x);
  }
  CU_OK(cuMemcpyHtoD(p, words.data(), 1 << 20));
  if (name == "atomic_same")
    expectSumsOf(function(ptx, "atomic_same"), 4, 256, {q, p});
  else if (name == "red_same" || name == "shared_atomic_same")
    expectSumsOf(function(ptx, name.c_str()), 4, 256, {q});
  else
    expectSumsOf(function(ptx, name.c_str()), 4, 256, {p, q});
}
INSTANTIATE_TEST_SUITE_P(Kernels, SumsOfMeasured,
                         ::testing::Values("copy_f32", "copy_f64", "copy_f128", "copy_u8", "load_stride2",
                                           "load_stride32", "load_misaligned1", "load_broadcast", "store_stride4",
                                           "shared_free", "shared_2way", "shared_32way", "shared_broadcast",
                                           "branch_uniform", "branch_divergent", "atomic_same", "red_same",
                                           "shared_atomic_same", "local_array", "shuffle_sum"),
                         [](const auto& info) { return std::string(info.param); });

// A kernel of random statements: arithmetic, accesses to every space by every size, guards, loops whose trips differ
// between lanes, branches over parts, calls, exchanges between lanes. Where it reads and writes follows from the
// thread and the seed, not from what memory holds.
class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {}
  std::string text() {
    std::string body = statements(8 + pick(8), 0);
    return kernel(body,
                  ".func work(.param .b32 x)\n{\n.reg .b32 %a<3>; .reg .pred %q; ld.param.u32 %a1, [x];\n"
                  "setp.gt.u32 %q, %a1, 9; @%q bra E; mul.lo.u32 %a2, %a1, 3;\nE: ret;\n}\n"
                  ".shared .align 16 .b8 s[4096];\n");
  }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string number(uint32_t n) { return std::to_string(n); }
  std::string statements(uint32_t n, uint32_t depth) {
    std::string out;
    for (; n > 0; --n) out += statement(depth);
    return out;
  }
  // Half of them under a guard that holds in some lanes, in whole warps, or in none.
  std::string guard(std::string* before) {
    if (pick(2)) return "";
    const char* of[] = {"%r1", "%r2", "%r3"};
    *before += "and.b32 %r8, " + std::string(of[pick(3)]) + ", " + number(pick(64)) + "; setp.lt.u32 %p1, %r8, " +
               number(pick(24)) + ";\n";
    return pick(2) ? "@%p1 " : "@!%p1 ";
  }
  // An index below `elements`, in %r9: a row, strides, a hash, or one for the block.
  std::string index(uint32_t elements) {
    std::string out;
    switch (pick(4)) {
      case 0: out = "add.u32 %r9, %r3, " + number(pick(64)) + ";"; break;
      case 1: out = "mul.lo.u32 %r9, %r3, " + number(1 + pick(40)) + ";"; break;
      case 2:
        out = "mad.lo.u32 %r9, %r3, " + number(static_cast<uint32_t>(random_()) | 1) + ", 77; shr.u32 %r9, %r9, 7;";
        break;
      default: out = "mov.u32 %r9, %r2;";
    }
    return out + " and.b32 %r9, %r9, " + number(elements - 1) + ";\n";
  }
  std::string access() {
    static constexpr struct {
      const char *type, *value;
      uint32_t bytes;
    } kTypes[] = {{"u8", "%r10", 1},
                  {"u16", "%h1", 2},
                  {"u32", "%r10", 4},
                  {"f32", "%f1", 4},
                  {"u64", "%rd9", 8},
                  {"f64", "%fd1", 8},
                  {"v2.u32", "{%r10, %r11}", 8},
                  {"v4.f32", "{%f1, %f2, %f3, %f4}", 16}};
    const auto& t = kTypes[pick(8)];
    const uint32_t where = pick(4);  // global, shared, generic to either
    const bool ofShared = where == 1 || where == 3;
    std::string out = index((ofShared ? 4096 : 1 << 18) / t.bytes);
    if (where == 1) {
      out += "mul.lo.u32 %r9, %r9, " + number(t.bytes) + "; mov.u32 %r12, s; add.u32 %r12, %r12, %r9;\n";
    } else {
      out += "mul.wide.u32 %rd8, %r9, " + number(t.bytes) + ";";
      out += where == 3 ? "mov.u64 %rd7, s; cvta.shared.u64 %rd7, %rd7; add.u64 %rd7, %rd7, %rd8;\n"
                        : "add.u64 %rd7, %rd1, %rd8;\n";
    }
    const std::string space = where == 0 ? ".global" : where == 1 ? ".shared" : "";
    const std::string at = where == 1 ? "[%r12]" : "[%rd7]";
    const std::string g = guard(&out);
    const bool atomic = t.bytes == 4 && t.type[0] == 'u' && pick(2);
    if (atomic && pick(2)) return out + g + "red" + space + ".add.u32 " + at + ", 1;\n";
    if (atomic)
      return out + g + "atom" + space + ".add.u32 %r10, " + at + ", 1; " +
             (pick(2) ? "add.u32 %r13, %r13, %r10;\n" : "\n");
    if (pick(2)) return out + g + "st" + space + "." + t.type + " " + at + ", " + t.value + ";\n";
    return out + g + "ld" + space + (where == 0 && pick(3) == 0 ? ".cg" : "") + "." + t.type + " " + t.value + ", " +
           at + ";\n";
  }
  std::string statement(uint32_t depth) {
    const std::string n = number(label_++);
    std::string out;
    switch (pick(depth < 3 ? 9 : 6)) {
      case 0: {
        static const char* const kOps[] = {"add.u32 %r13, %r13, %r3;",  "fma.rn.f32 %f5, %f5, %f5, %f1;",
                                           "add.f64 %fd2, %fd2, %fd1;", "cvt.rn.f32.u32 %f6, %r13;",
                                           "popc.b32 %r14, %r13;",      "mov.u32 %r14, %laneid;"};
        const std::string g = guard(&out);
        return out + g + kOps[pick(6)] + "\n";
      }
      case 1: return "shfl.idx.b32 %r14, %r13, 3, 31; vote.ballot.b32 %r15, %p1;\n";
      case 6:
        return "and.b32 %r8, %r1, " + number(pick(64)) + "; setp.lt.u32 %p2, %r8, " + number(pick(30)) + ";\n@" +
               (pick(2) ? "!" : "") + "%p2 bra S" + n + ";\n" + statements(1 + pick(3), depth + 1) + "S" + n + ":\n";
      case 7: {  // the counter of each depth has a register of its own
        const std::string counter = "%r" + number(20 + depth);
        return "and.b32 " + counter + ", " + (pick(2) ? "%r1" : "%r2") + ", " + number(pick(6)) + ";\nT" + n + ":\n" +
               statements(1 + pick(3), depth + 1) + "setp.ne.u32 %p3, " + counter + ", 0; sub.u32 " + counter + ", " +
               counter + ", 1;\n@%p3 bra T" + n + ";\n";
      }
      case 8: return "{\n.param .b32 a; st.param.b32 [a], %r1; call work, (a);\n}\n";
      default: return access();
    }
  }
  std::mt19937 random_;
  uint32_t label_ = 0;
};

class SumsOfRandom : public SourceSums, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(SumsOfRandom, EqualTheEventsOfTheSameLaunch) {
  enableAll();
  const CUdeviceptr p = buffer(1 << 18), q = buffer(1 << 18);
  for (uint32_t seed = 10 * GetParam(); seed < 10 * GetParam() + 10; ++seed) {
    const std::string text = RandomKernel(seed).text();
    SCOPED_TRACE(text);
    expectSumsOf(function(text, "k"), 1 + seed % 4, 32 + 13 * (seed % 10), {p, q});
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, SumsOfRandom, ::testing::Range(0u, 4u));

}  // namespace
}  // namespace sonde::test
