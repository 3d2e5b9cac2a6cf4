// SPDX-License-Identifier: Apache-2.0
// The functions that stand in the application's NVTX tables: each does its
// work, then tells the subscribers of the NVTX domain.
#include <cupti.h>

#include "core/core.h"
#include "core/nvtx.h"
#include "core/strings.h"

namespace sonde::core::nvtx {
namespace {

// The parameter structures of callbacks, by shape.
struct OnePointer {
  const void* value;
};
struct DomainPointer {
  const void* domain;
  const void* value;
};
struct DomainNumber {
  const void* domain;
  uint64_t value;
};
struct NumberPointer {
  uint32_t number;
  const void* value;
};

template <typename Params>
void tell(CUpti_nvtx_api_trace_cbid cbid, const Params& params, const void* returned = nullptr) {
  if (!eventWanted(CUPTI_CB_DOMAIN_NVTX, cbid)) return;
  CUpti_NvtxData data{};
  data.functionName = nvtxName(cbid);
  data.functionParams = &params;
  data.functionReturnValue = returned;
  dispatchEvent(CUPTI_CB_DOMAIN_NVTX, cbid, &data);
}

Event plain(const char* text) {
  Event event;
  event.text = intern(text);
  return event;
}
Event wide(const wchar_t* text) {
  Event event;
  event.text = internWide(text);
  return event;
}

#define SONDE_ID(function) CUPTI_CBID_NVTX_##function

// -- Core.
void markEx(const EventAttributes* a) {
  mark(nullptr, eventOf(a));
  tell(SONDE_ID(nvtxMarkEx), OnePointer{a});
}
void markA(const char* text) {
  mark(nullptr, plain(text));
  tell(SONDE_ID(nvtxMarkA), OnePointer{text});
}
void markW(const wchar_t* text) {
  mark(nullptr, wide(text));
  tell(SONDE_ID(nvtxMarkW), OnePointer{text});
}
uint64_t rangeStartEx(const EventAttributes* a) {
  const uint64_t id = rangeStart(nullptr, eventOf(a));
  tell(SONDE_ID(nvtxRangeStartEx), OnePointer{a}, &id);
  return id;
}
uint64_t rangeStartA(const char* text) {
  const uint64_t id = rangeStart(nullptr, plain(text));
  tell(SONDE_ID(nvtxRangeStartA), OnePointer{text}, &id);
  return id;
}
uint64_t rangeStartW(const wchar_t* text) {
  const uint64_t id = rangeStart(nullptr, wide(text));
  tell(SONDE_ID(nvtxRangeStartW), OnePointer{text}, &id);
  return id;
}
void endRange(uint64_t id) {
  rangeEnd(nullptr, id);
  tell(SONDE_ID(nvtxRangeEnd), id);
}
int rangePushEx(const EventAttributes* a) {
  const int level = rangePush(nullptr, eventOf(a));
  tell(SONDE_ID(nvtxRangePushEx), OnePointer{a}, &level);
  return level;
}
int rangePushA(const char* text) {
  const int level = rangePush(nullptr, plain(text));
  tell(SONDE_ID(nvtxRangePushA), OnePointer{text}, &level);
  return level;
}
int rangePushW(const wchar_t* text) {
  const int level = rangePush(nullptr, wide(text));
  tell(SONDE_ID(nvtxRangePushW), OnePointer{text}, &level);
  return level;
}
int popRange() {
  const int level = rangePop(nullptr);
  tell(SONDE_ID(nvtxRangePop), OnePointer{nullptr}, &level);
  return level;
}
void nameCategoryA(uint32_t category, const char* text) {
  tell(SONDE_ID(nvtxNameCategoryA), NumberPointer{category, text});
}
void nameCategoryW(uint32_t category, const wchar_t* text) {
  tell(SONDE_ID(nvtxNameCategoryW), NumberPointer{category, text});
}
void nameOsThreadA(uint32_t thread, const char* text) {
  name(Named::kThread, nullptr, thread, text);
  tell(SONDE_ID(nvtxNameOsThreadA), NumberPointer{thread, text});
}
void nameOsThreadW(uint32_t thread, const wchar_t* text) {
  name(Named::kThread, nullptr, thread, internWide(text));
  tell(SONDE_ID(nvtxNameOsThreadW), NumberPointer{thread, text});
}

// -- Names of CUDA objects, for driver and runtime handles alike.
template <CUpti_nvtx_api_trace_cbid cbid>
void nameDeviceA(int device, const char* text) {
  name(Named::kDevice, nullptr, static_cast<uint32_t>(device), text);
  tell(cbid, NumberPointer{static_cast<uint32_t>(device), text});
}
template <CUpti_nvtx_api_trace_cbid cbid>
void nameDeviceW(int device, const wchar_t* text) {
  name(Named::kDevice, nullptr, static_cast<uint32_t>(device), internWide(text));
  tell(cbid, NumberPointer{static_cast<uint32_t>(device), text});
}
template <CUpti_nvtx_api_trace_cbid cbid, Named what>
void nameHandleA(void* handle, const char* text) {
  name(what, handle, 0, text);
  tell(cbid, DomainPointer{handle, text});
}
template <CUpti_nvtx_api_trace_cbid cbid, Named what>
void nameHandleW(void* handle, const wchar_t* text) {
  name(what, handle, 0, internWide(text));
  tell(cbid, DomainPointer{handle, text});
}
// Records have no object kind for events.
template <CUpti_nvtx_api_trace_cbid cbid>
void nameEvent(void* handle, const void* text) {
  tell(cbid, DomainPointer{handle, text});
}

// -- Domains.
void domainMarkEx(const Domain* domain, const EventAttributes* a) {
  mark(domain, eventOf(a));
  tell(SONDE_ID(nvtxDomainMarkEx), DomainPointer{domain, a});
}
uint64_t domainRangeStartEx(const Domain* domain, const EventAttributes* a) {
  const uint64_t id = rangeStart(domain, eventOf(a));
  tell(SONDE_ID(nvtxDomainRangeStartEx), DomainPointer{domain, a}, &id);
  return id;
}
void domainRangeEnd(const Domain* domain, uint64_t id) {
  rangeEnd(domain, id);
  tell(SONDE_ID(nvtxDomainRangeEnd), DomainNumber{domain, id});
}
int domainRangePushEx(const Domain* domain, const EventAttributes* a) {
  const int level = rangePush(domain, eventOf(a));
  tell(SONDE_ID(nvtxDomainRangePushEx), DomainPointer{domain, a}, &level);
  return level;
}
int domainRangePop(const Domain* domain) {
  const int level = rangePop(domain);
  tell(SONDE_ID(nvtxDomainRangePop), OnePointer{domain}, &level);
  return level;
}
// A resource is nothing but its handle here.
void* domainResourceCreate(const Domain* domain, const void* attributes) {
  static std::atomic<uintptr_t> next{1};
  auto* handle = reinterpret_cast<void*>(next.fetch_add(1));
  tell(SONDE_ID(nvtxDomainResourceCreate), DomainPointer{domain, attributes}, &handle);
  return handle;
}
void domainResourceDestroy(void* resource) { tell(SONDE_ID(nvtxDomainResourceDestroy), OnePointer{resource}); }
struct DomainNumberPointer {
  const void* domain;
  NumberPointer core;
};
void domainNameCategoryA(const Domain* domain, uint32_t category, const char* text) {
  tell(SONDE_ID(nvtxDomainNameCategoryA), DomainNumberPointer{domain, {category, text}});
}
void domainNameCategoryW(const Domain* domain, uint32_t category, const wchar_t* text) {
  tell(SONDE_ID(nvtxDomainNameCategoryW), DomainNumberPointer{domain, {category, text}});
}
// The handle of a registered string is the interned string.
const void* domainRegisterStringA(const Domain* domain, const char* text) {
  const void* handle = intern(text);
  tell(SONDE_ID(nvtxDomainRegisterStringA), DomainPointer{domain, text}, &handle);
  return handle;
}
const void* domainRegisterStringW(const Domain* domain, const wchar_t* text) {
  const void* handle = internWide(text);
  tell(SONDE_ID(nvtxDomainRegisterStringW), DomainPointer{domain, text}, &handle);
  return handle;
}
const void* domainCreateA(const char* text) {
  const void* domain = createDomain(text);
  tell(SONDE_ID(nvtxDomainCreateA), OnePointer{text}, &domain);
  return domain;
}
const void* domainCreateW(const wchar_t* text) {
  const void* domain = createDomain(internWide(text));
  tell(SONDE_ID(nvtxDomainCreateW), OnePointer{text}, &domain);
  return domain;
}
// Records keep pointing at the domain's name: the domain itself stays.
void domainDestroy(const Domain* domain) { tell(SONDE_ID(nvtxDomainDestroy), OnePointer{domain}); }
void initialize(const void*) {}

// -- User-defined synchronisation objects: callbacks only.
void* syncCreate(const Domain* domain, const void* attributes) {
  static std::atomic<uintptr_t> next{1};
  auto* handle = reinterpret_cast<void*>(next.fetch_add(1));
  tell(SONDE_ID(nvtxDomainSyncUserCreate), DomainPointer{domain, attributes}, &handle);
  return handle;
}
template <CUpti_nvtx_api_trace_cbid cbid>
void syncEvent(void* handle) {
  tell(cbid, OnePointer{handle});
}

using Function = void (*)();
template <typename F>
Function any(F* function) {
  return reinterpret_cast<Function>(function);
}

// By the function's number in its module; 0 is unused.
const Function kCore[] = {
    nullptr,           any(markEx),      any(markA),         any(markW),         any(rangeStartEx),
    any(rangeStartA),  any(rangeStartW), any(endRange),      any(rangePushEx),   any(rangePushA),
    any(rangePushW),   any(popRange),    any(nameCategoryA), any(nameCategoryW), any(nameOsThreadA),
    any(nameOsThreadW)};
const Function kCuda[] = {nullptr,
                          any(nameDeviceA<SONDE_ID(nvtxNameCuDeviceA)>),
                          any(nameDeviceW<SONDE_ID(nvtxNameCuDeviceW)>),
                          any(nameHandleA<SONDE_ID(nvtxNameCuContextA), Named::kContext>),
                          any(nameHandleW<SONDE_ID(nvtxNameCuContextW), Named::kContext>),
                          any(nameHandleA<SONDE_ID(nvtxNameCuStreamA), Named::kStream>),
                          any(nameHandleW<SONDE_ID(nvtxNameCuStreamW), Named::kStream>),
                          any(nameEvent<SONDE_ID(nvtxNameCuEventA)>),
                          any(nameEvent<SONDE_ID(nvtxNameCuEventW)>)};
const Function kRuntime[] = {nullptr,
                             any(nameDeviceA<SONDE_ID(nvtxNameCudaDeviceA)>),
                             any(nameDeviceW<SONDE_ID(nvtxNameCudaDeviceW)>),
                             any(nameHandleA<SONDE_ID(nvtxNameCudaStreamA), Named::kStream>),
                             any(nameHandleW<SONDE_ID(nvtxNameCudaStreamW), Named::kStream>),
                             any(nameEvent<SONDE_ID(nvtxNameCudaEventA)>),
                             any(nameEvent<SONDE_ID(nvtxNameCudaEventW)>)};
const Function kDomains[] = {nullptr,
                             any(domainMarkEx),
                             any(domainRangeStartEx),
                             any(domainRangeEnd),
                             any(domainRangePushEx),
                             any(domainRangePop),
                             any(domainResourceCreate),
                             any(domainResourceDestroy),
                             any(domainNameCategoryA),
                             any(domainNameCategoryW),
                             any(domainRegisterStringA),
                             any(domainRegisterStringW),
                             any(domainCreateA),
                             any(domainCreateW),
                             any(domainDestroy),
                             any(initialize)};
const Function kSync[] = {nullptr,
                          any(syncCreate),
                          any(syncEvent<SONDE_ID(nvtxDomainSyncUserDestroy)>),
                          any(syncEvent<SONDE_ID(nvtxDomainSyncUserAcquireStart)>),
                          any(syncEvent<SONDE_ID(nvtxDomainSyncUserAcquireFailed)>),
                          any(syncEvent<SONDE_ID(nvtxDomainSyncUserAcquireSuccess)>),
                          any(syncEvent<SONDE_ID(nvtxDomainSyncUserReleasing)>)};
#undef SONDE_ID

// Table 1 of the application: gives the places of a module's functions.
struct CallbackTable {
  size_t size;
  int (*getModuleFunctionTable)(int module, Function*** table, unsigned* count);
};
// Table 3: the application's NVTX may be told the tool's version.
struct VersionTable {
  size_t size;
  uint32_t version, reserved;
  void (*setInjectionVersion)(uint32_t version);
};
constexpr uint32_t kCallbackTable = 1, kVersionTable = 3;
constexpr uint32_t kNvtxVersion = 3;

struct Module {
  int number;
  const Function* functions;
  size_t count;
};
#define SONDE_MODULE(number, table) {number, table, sizeof table / sizeof *table}
const Module kModules[] = {SONDE_MODULE(1, kCore), SONDE_MODULE(2, kCuda), SONDE_MODULE(4, kRuntime),
                           SONDE_MODULE(5, kDomains), SONDE_MODULE(6, kSync)};
#undef SONDE_MODULE

}  // namespace

bool attach(GetExportTable getExportTable) {
  if (getExportTable == nullptr) return false;
  const auto* callbacks = static_cast<const CallbackTable*>(getExportTable(kCallbackTable));
  if (callbacks == nullptr || callbacks->size < sizeof(CallbackTable)) return false;
  if (const auto* version = static_cast<const VersionTable*>(getExportTable(kVersionTable));
      version != nullptr && version->size >= sizeof(VersionTable) && version->setInjectionVersion != nullptr) {
    version->setInjectionVersion(kNvtxVersion);
  }
  bool core = false;
  for (const Module& module : kModules) {
    Function** table = nullptr;
    unsigned count = 0;
    if (callbacks->getModuleFunctionTable(module.number, &table, &count) == 0 || table == nullptr) continue;
    for (unsigned i = 1; i < count && i < module.count; ++i) {
      if (table[i] != nullptr && module.functions[i] != nullptr) *table[i] = module.functions[i];
    }
    core = core || module.number == 1;
  }
  return core;
}

}  // namespace sonde::core::nvtx
