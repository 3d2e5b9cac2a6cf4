// SPDX-License-Identifier: Apache-2.0
// NVTX headers: a tool that is linked in hears the calls with their arguments.
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtSync.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/generated/nvtx_slots.h"

namespace {

int loaded = 0;
unsigned int tableSizes[NVTX_CB_MODULE_SIZE];
uint32_t version = 0;
std::vector<std::string> calls;

int pushA(const char* message) { return calls.push_back(std::string("push ") + message), 3; }
int pop() { return calls.push_back("pop"), 4; }
nvtxRangeId_t startEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  calls.push_back(std::string("start ") + attributes->message.ascii + " " +
                  std::to_string(attributes->payload.llValue));
  return reinterpret_cast<uintptr_t>(domain) + 1;
}
nvtxDomainHandle_t createA(const char* name) {
  calls.push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(uintptr_t{100});
}
void nameStream(void* stream, const char* name) {
  calls.push_back(std::string("stream ") + std::to_string(reinterpret_cast<uintptr_t>(stream)) + " " + name);
}

template <class F>
void set(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module, unsigned int index, F* function) {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  ASSERT_EQ(callbacks->GetModuleFunctionTable(module, &table, &size), 1);
  ASSERT_LT(index, size);
  EXPECT_EQ(table[0], nullptr);
  *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int startTool(NvtxGetExportTableFunc_t getTable) {
  ++loaded;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(getTable(NVTX_ETID_CALLBACKS));
  const auto* info = static_cast<const NvtxExportTableVersionInfo*>(getTable(NVTX_ETID_VERSIONINFO));
  version = info->version;
  info->SetInjectionNvtxVersion(3);
  for (int m = 1; m < NVTX_CB_MODULE_SIZE; ++m) {
    callbacks->GetModuleFunctionTable(static_cast<NvtxCallbackModule>(m), nullptr, &tableSizes[m]);
  }
  EXPECT_EQ(callbacks->struct_size, 16u);
  EXPECT_EQ(callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_INVALID, nullptr, nullptr), 0);
  EXPECT_EQ(getTable(99), nullptr);
  set(callbacks, NVTX_CB_MODULE_CORE, 9, pushA);
  set(callbacks, NVTX_CB_MODULE_CORE, 11, pop);
  set(callbacks, NVTX_CB_MODULE_CORE2, 2, startEx);
  set(callbacks, NVTX_CB_MODULE_CORE2, 12, createA);
  set(callbacks, NVTX_CB_MODULE_CUDART, 3, nameStream);
  return 1;
}

TEST(Nvtx, AToolHearsTheCallsItAskedFor) {
  unsetenv("NVTX_INJECTION64_PATH");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { nvtxMarkA("not heard"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loaded, 1);
  EXPECT_EQ(version, 3u);
  EXPECT_EQ(std::vector<unsigned int>(tableSizes + 1, tableSizes + 7),
            std::vector<unsigned int>({16, 9, 15, 7, 16, 7}));

  EXPECT_EQ(nvtxRangePush("outer"), 3);
  EXPECT_EQ(nvtxRangePop(), 4);
  EXPECT_EQ(nvtxRangePushW(L"wide"), NVTX_NO_PUSH_POP_TRACKING);
  EXPECT_EQ(nvtxRangeStartA("nobody"), 0u);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = -7;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "range";
  EXPECT_EQ(nvtxDomainRangeStartEx(domain, &attributes), 101u);
  nvtxNameCudaStreamA(reinterpret_cast<cudaStream_t>(uintptr_t{5}), "copies");
  EXPECT_EQ(calls, (std::vector<std::string>{"push outer", "pop", "domain mine", "start range -7", "stream 5 copies"}));
  EXPECT_EQ(loaded, 1);
}

TEST(Nvtx, Layout) {
  EXPECT_EQ(sizeof(nvtxEventAttributes_t), 48u);
  EXPECT_EQ(offsetof(nvtxEventAttributes_t, payload), 24u);
  EXPECT_EQ(offsetof(nvtxEventAttributes_t, message), 40u);
  EXPECT_EQ(sizeof(nvtxResourceAttributes_t), 32u);
  EXPECT_EQ(sizeof(nvtxSyncUserAttributes_t), 16u);
  EXPECT_EQ(NVTX_RESOURCE_TYPE_CUDA_STREAM, 0x40003);
}

TEST(Nvtx, SlotsKnowTheirCallbackIds) {
  int withoutId = 0;
  for (const sonde::core::NvtxSlot& slot : sonde::core::kNvtxSlots) {
    withoutId += slot.cbid == 0;
    if (std::strcmp(slot.function, "nvtxRangePushA") == 0) {
      EXPECT_EQ(slot.module * 10000 + slot.index * 100 + slot.cbid, 10908);
    }
  }
  EXPECT_EQ(withoutId, 1);  // nvtxInitialize
}

}  // namespace

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = startTool;
