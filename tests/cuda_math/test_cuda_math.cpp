// SPDX-License-Identifier: Apache-2.0
//
// Compiles math.cu with the CUDA compiler of the machine, where there is one,
// runs its kernels in the engine and compares with the host's library.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "../exec/device_fixture.h"
#include "nvcc.h"

namespace sonde::softgpu::exec {
namespace {

// Distance in units in the last place of the wanted value.
template <class T>
double ulps(T got, T want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (std::isnan(got) || std::isnan(want) || std::isinf(got) || std::isinf(want)) return INFINITY;
  const T next = std::nextafter(std::fabs(want), std::numeric_limits<T>::infinity());
  return static_cast<double>(std::fabs(got - want) / (next - std::fabs(want)));
}

template <class T>
struct Function {
  const char* name;
  T (*host)(T, T);
  double bound;  // ulps: the CUDA manual's, and one for the host's own error
};

template <class T>
void checkAll(Kernels& kernels, const Function<T>* functions, size_t count, const char* suffix) {
  constexpr int n = 4096;
  DeviceArray<T> x(n), y(n), out(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<T>(std::sin(i * 1.7) * 60.0 + i * 1e-3);
    y[i] = static_cast<T>(std::cos(i * 2.3) * 9.0 + 0.01);
  }
  // Some beyond the fast range reduction, and special values.
  const T special[] = {0,
                       -T{0},
                       1,
                       -1,
                       T(1e5),
                       T(123456.75),
                       T(3e7),
                       T(-1e10),
                       std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::min(),
                       T(0.5),
                       T(1e-6)};
  for (size_t i = 0; i < std::size(special); ++i) x[7 * i] = special[i];
  for (size_t f = 0; f < count; ++f) {
    const Function<T>& fn = functions[f];
    const LaunchOutcome outcome =
        kernels.run(std::string(fn.name) + suffix, {n / 128}, {128}, x.address, y.address, out.address, n);
    ASSERT_EQ(outcome.error, 0) << fn.name << suffix << ": " << outcome.message;
    double worst = 0;
    int at = 0;
    for (int i = 0; i < n; ++i)
      if (const double u = ulps<T>(out[i], fn.host(x[i], y[i])); !(u <= worst)) {
        worst = u;
        at = i;
      }
    testing::Test::RecordProperty(std::string(fn.name) + suffix, std::to_string(worst));
    if (std::getenv("SONDE_TEST_VERBOSE")) std::printf("  %s%s: %.2f ulp\n", fn.name, suffix, worst);
    EXPECT_LE(worst, fn.bound) << fn.name << suffix << "(" << x[at] << ", " << y[at] << ") = " << out[at] << ", host "
                               << fn.host(x[at], y[at]);
  }
}

#define HOST(expression)              \
  [](auto x, auto y) -> decltype(x) { \
    (void)y;                          \
    return expression;                \
  }
#define FUNCTIONS(T, c)                                                                                                \
  {"k_sin", HOST(std::sin(x)), 3}, {"k_cos", HOST(std::cos(x)), 3}, {"k_tan", HOST(std::tan(x)), 5},                   \
      {"k_asin", HOST(std::asin(x * T(0.01))), 4}, {"k_atan2", HOST(std::atan2(x, y)), 4},                             \
      {"k_exp", HOST(std::exp(x)), 3}, {"k_exp2", HOST(std::exp2(x)), 3}, {"k_expm1", HOST(std::expm1(x)), 3},         \
      {"k_log", HOST(std::log(std::fabs(x))), 3}, {"k_log1p", HOST(std::log1p(std::fabs(x))), 3},                      \
      {"k_log10", HOST(std::log10(std::fabs(x))), 4}, {"k_pow", HOST(std::pow(std::fabs(x), y)), 6},                   \
      {"k_sinh", HOST(std::sinh(x)), 5}, {"k_tanh", HOST(std::tanh(x)), 4}, {"k_erf", HOST(std::erf(x)), 4},           \
      {"k_erfc", HOST(std::erfc(x * T(0.1))), 8}, {"k_tgamma", HOST(std::tgamma(x * T(0.2))), 14},                     \
      {"k_cbrt", HOST(std::cbrt(x)), 3}, {"k_hypot", HOST(std::hypot(x, y)), 5}, {"k_fmod", HOST(std::fmod(x, y)), 0}, \
      {"k_remainder", HOST(std::remainder(x, y)), 0}, {"k_rint", HOST(std::nearbyint(x)), 0},                          \
      {"k_round", HOST(std::round(x)), 0}, {"k_floor", HOST(std::floor(x)), 0}, {"k_trunc", HOST(std::trunc(x)), 0},   \
      {"k_nextafter", HOST(std::nextafter(x, y)), 0}, {"k_ldexp", HOST(std::ldexp(x, 5)), 0},                          \
      {"k_fdim", HOST(std::fdim(x, y)), 0}, {"k_fma", HOST(std::fma(x, y, x)), 0}, {"k_div", HOST(x / y), 0},          \
      {"k_sqrt", HOST(std::sqrt(std::fabs(x))), 0}

TEST(CudaMath, AgreesWithTheHostsLibrary) {
  const std::string ptx = test::compileCuda(SONDE_MATH_CU);
  if (ptx.empty()) GTEST_SKIP() << "no CUDA compiler on this machine";
  Kernels kernels(ptx);
  ASSERT_TRUE(kernels.program);
  const Function<float> singles[] = {FUNCTIONS(float, )};
  const Function<double> doubles[] = {FUNCTIONS(double, )};
  checkAll<float>(kernels, singles, std::size(singles), "_f");
  checkAll<double>(kernels, doubles, std::size(doubles), "_d");
}

}  // namespace
}  // namespace sonde::softgpu::exec
