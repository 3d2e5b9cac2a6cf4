// SPDX-License-Identifier: Apache-2.0
// What a callback sees of a call: every function that the software GPU exports
// is called with values that differ from each other, and its parameter structure
// is compared field by field at the entry and at the exit.
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace sonde::test {
namespace {

// ----------------------------------------------------------- the arguments --

// Where pointers point to: one piece for each argument, all zero before a call.
constexpr size_t kPiece = 64 * 1024, kPieces = 24;
alignas(4096) unsigned char scratch[kPiece * kPieces];

void nothing() {}

// The value of the argument at `place`, unlike that at any other place.
template <typename T>
T valueAt(size_t place) {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (std::is_function_v<std::remove_pointer_t<T>>) {
      return reinterpret_cast<T>(&nothing);
    } else {
      return reinterpret_cast<T>(scratch + place * kPiece + 256);
    }
  } else if constexpr (std::is_same_v<T, unsigned long long>) {
    return reinterpret_cast<unsigned long long>(scratch + place * kPiece + 512);  // addresses, as a rule
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(place + 1);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(place) + 0.5);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(2 * place + 3);
  } else {
    T value;
    std::memset(static_cast<void*>(&value), static_cast<int>(place + 1), sizeof value);
    return value;
  }
}

// The parameter structure as it has to be: its fields, one behind the other with
// the alignment of their types.
struct Field {
  size_t offset, size;
  std::vector<unsigned char> value;
};

template <typename T>
void addField(std::vector<Field>& fields, size_t& end, T value) {
  const size_t offset = (end + alignof(T) - 1) / alignof(T) * alignof(T);
  Field field{offset, sizeof(T), std::vector<unsigned char>(sizeof(T))};
  std::memcpy(field.value.data(), &value, sizeof value);
  fields.push_back(std::move(field));
  end = offset + sizeof(T);
}

// ------------------------------------------------------------ the callback --

struct Expected {
  CUpti_CallbackDomain domain;
  uint32_t cbid;
  std::vector<Field> fields;
  // What was seen.
  int enters = 0, exits = 0, result = -1;
  std::vector<size_t> wrongAtEnter, wrongAtExit;
  std::string name;
  const void *paramsAtEnter = nullptr, *paramsAtExit = nullptr, *returnAtEnter = nullptr;
  uint64_t *slot = nullptr, slotAtEnter = 0, kept = 0;
  uint32_t correlation = 0, correlationAtExit = 0;
  CUcontext context = nullptr;
  uint32_t contextUid = 0;
};
Expected* expected = nullptr;

std::vector<size_t> wrongFields(const Expected& e, const void* params) {
  std::vector<size_t> wrong;
  for (size_t i = 0; i < e.fields.size(); ++i) {
    const Field& f = e.fields[i];
    if (std::memcmp(static_cast<const unsigned char*>(params) + f.offset, f.value.data(), f.size) != 0)
      wrong.push_back(i);
  }
  return wrong;
}

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* raw) {
  if (expected == nullptr || domain != expected->domain || cbid != expected->cbid) return;
  Expected& e = *expected;
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  if (data.callbackSite == CUPTI_API_ENTER) {
    ++e.enters;
    e.name = data.functionName;
    e.paramsAtEnter = data.functionParams;
    e.returnAtEnter = data.functionReturnValue;
    if (data.functionParams != nullptr) e.wrongAtEnter = wrongFields(e, data.functionParams);
    e.slot = data.correlationData;
    e.slotAtEnter = *data.correlationData;
    *data.correlationData = 4700 + cbid;
    e.correlation = data.correlationId;
    e.context = data.context;
    e.contextUid = data.contextUid;
  } else {
    ++e.exits;
    e.paramsAtExit = data.functionParams;
    if (data.functionParams != nullptr) e.wrongAtExit = wrongFields(e, data.functionParams);
    if (data.correlationData == e.slot) e.kept = *data.correlationData;
    e.correlationAtExit = data.correlationId;
    e.result = *static_cast<const int*>(data.functionReturnValue);
  }
}

// ----------------------------------------------------------------- the test --

// Those that would end or change what the test stands on, whatever the arguments.
const std::set<std::string> leftOut = {};

class ParameterValues : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaFree(nullptr));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber_, called, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&context_));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(context_, &contextId_));
  }
  void TearDown() override {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    EXPECT_GE(calls_, atLeast_);
    std::printf("%zu functions called\n", calls_);
  }

  template <typename Result, typename... T>
#if defined(__clang__)
  __attribute__((no_sanitize("function")))
#endif
  static Result
  callIt(void* function, T... values) {
    return reinterpret_cast<Result (*)(T...)>(function)(values...);
  }

  template <typename Result, typename... T>
  void check(CUpti_CallbackDomain domain, uint32_t cbid, const char* symbol, void* library) {
    void* function = dlsym(library, symbol);
    if (function == nullptr || leftOut.count(symbol) != 0) return;
    SCOPED_TRACE(symbol);
    if (std::getenv("PARAMETER_VALUES_NAMES") != nullptr) std::fprintf(stderr, "%s\n", symbol);
    Expected e{};
    e.domain = domain;
    e.cbid = cbid;
    size_t end = 0, place = 0;
    (addField<T>(e.fields, end, valueAt<T>(place++)), ...);
    std::memset(scratch, 0, sizeof scratch);
    const int before = cuCtxSetCurrent(context_);
    ASSERT_EQ(0, before);
    expected = &e;
    const Result result = invoke<Result, T...>(function, std::index_sequence_for<T...>());
    expected = nullptr;
    ++calls_;
    EXPECT_EQ(1, e.enters);
    EXPECT_EQ(1, e.exits);
    EXPECT_EQ(symbol, e.name);
    ASSERT_NE(nullptr, e.paramsAtEnter);
    EXPECT_EQ(e.paramsAtEnter, e.paramsAtExit);
    EXPECT_EQ(std::vector<size_t>{}, e.wrongAtEnter) << "parameters, counted from 0";
    EXPECT_EQ(std::vector<size_t>{}, e.wrongAtExit) << "parameters, counted from 0";
    EXPECT_EQ(nullptr, e.returnAtEnter) << "nothing is returned yet";
    EXPECT_EQ(static_cast<int>(result), e.result);
    EXPECT_EQ(0u, e.slotAtEnter);
    EXPECT_EQ(4700u + cbid, e.kept) << "the correlation data";
    EXPECT_NE(0u, e.correlation);
    EXPECT_EQ(e.correlation, e.correlationAtExit);
    EXPECT_EQ(context_, e.context);
    EXPECT_EQ(contextId_, e.contextUid);
  }
  template <typename Result, typename... T, size_t... I>
  static Result invoke(void* function, std::index_sequence<I...>) {
    return callIt<Result, T...>(function, valueAt<T>(I)...);
  }

  CUpti_SubscriberHandle subscriber_ = nullptr;
  CUcontext context_ = nullptr;
  uint32_t contextId_ = 0;
  size_t calls_ = 0, atLeast_ = 0;
};

#define DRIVER(cbid, symbol, ...) check<CUresult, __VA_ARGS__>(CUPTI_CB_DOMAIN_DRIVER_API, cbid, symbol, library);
#define RUNTIME(cbid, symbol, ...) check<cudaError_t, __VA_ARGS__>(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, symbol, library);

TEST_F(ParameterValues, OfEveryDriverFunction) {
  atLeast_ = 600;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API));
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
#include "driver_parameters.inc"
}

TEST_F(ParameterValues, OfEveryRuntimeFunction) {
  atLeast_ = 350;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
  void* library = dlopen("libcudart.so.13", RTLD_NOW);
#include "runtime_parameters.inc"
}

}  // namespace
}  // namespace sonde::test
