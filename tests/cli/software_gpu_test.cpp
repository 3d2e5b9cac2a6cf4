// SPDX-License-Identifier: Apache-2.0
// Options of `run` that ask the software GPU for more than a profile.
#include <gmock/gmock.h>

#include "built_product.h"

namespace sonde::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class SoftwareGpu : public BuiltProduct {};

TEST_F(SoftwareGpu, FidelityOfEachKernel) {
  const Outcome o = sonde({"run", "-q", "--no-report", "--fidelity", SOURCED});
  EXPECT_EQ(o.status, 0) << o.err;
  // sourced.cpp: 12 instructions and 2.
  EXPECT_THAT(o.out, HasSubstr("_Z5scalePf\n    12 exact, 0 within bound, 0 order-dependent, 0 unsupported\n"));
  EXPECT_THAT(o.out, HasSubstr("plain\n    2 exact, 0 within bound, 0 order-dependent, 0 unsupported\n"));
}

TEST_F(SoftwareGpu, ChecksFindWhatIsAskedFor) {
  const Outcome memory = sonde({"run", "-q", "--no-report", "--memcheck", FAULTY});
  EXPECT_EQ(memory.status, 82);
  EXPECT_THAT(memory.err, HasSubstr("just beyond the end of an allocation of 128 bytes"));
  EXPECT_THAT(memory.err, HasSubstr("thread (31,0,0)"));
  EXPECT_THAT(memory.err, Not(HasSubstr("uninitialized")));

  const Outcome init = sonde({"run", "-q", "--no-report", "--initcheck", FAULTY});
  EXPECT_THAT(init.err, HasSubstr("uninitialized memory: "));
  EXPECT_THAT(init.err, HasSubstr("thread (0,0,0)"));

  const Outcome none = sonde({"run", "-q", "--no-report", FAULTY});
  EXPECT_THAT(none.err, Not(HasSubstr("uninitialized")));
}

TEST_F(SoftwareGpu, ChecksNeedIt) {
  const Outcome o = sonde({"run", "--device", "real", "--memcheck", FAULTY});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("need the software GPU (--device software)"));
}

}  // namespace
}  // namespace sonde::test
