// SPDX-License-Identifier: Apache-2.0
// The functions of the Callback API and the small ones, as the tables name them.
#include <Openacc/cupti_openacc.h>
#include <cuda_runtime_api.h>
#include <cupti_pcsampling.h>
#include <cupti_target.h>
#include <generated_cuda_runtime_api_meta.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "player.h"

extern "C" CUptiResult CUPTIAPI cuptiNvtxInitialize(void* pfnGetExportTable);
extern "C" CUptiResult CUPTIAPI cuptiNvtxInitialize2(void* pfnGetExportTable);
extern "C" int InitializeInjectionNvtx2(void* getExportTable);

namespace clients {
namespace {

struct Name {
  const char* name;
  uint32_t number;
};
#define RESOURCE(name) {#name, CUPTI_CBID_RESOURCE_##name}
const Name kResources[] = {RESOURCE(CONTEXT_CREATED),        RESOURCE(CONTEXT_DESTROY_STARTING),
                           RESOURCE(STREAM_CREATED),         RESOURCE(STREAM_DESTROY_STARTING),
                           RESOURCE(CU_INIT_FINISHED),       RESOURCE(MODULE_LOADED),
                           RESOURCE(MODULE_UNLOAD_STARTING), RESOURCE(MODULE_PROFILED),
                           RESOURCE(GRAPH_CREATED),          RESOURCE(GRAPH_DESTROY_STARTING),
                           RESOURCE(GRAPH_CLONED),           RESOURCE(GRAPHNODE_CREATE_STARTING),
                           RESOURCE(GRAPHNODE_CREATED),      RESOURCE(GRAPHNODE_DESTROY_STARTING),
                           RESOURCE(GRAPHNODE_CLONED),       RESOURCE(GRAPHEXEC_CREATE_STARTING),
                           RESOURCE(GRAPHEXEC_CREATED),      RESOURCE(GRAPHEXEC_DESTROY_STARTING)};
const Name kSynchronize[] = {{"STREAM_SYNCHRONIZED", CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED},
                             {"CONTEXT_SYNCHRONIZED", CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED}};
const Name kDomains[] = {{"DRIVER_API", CUPTI_CB_DOMAIN_DRIVER_API},
                         {"RUNTIME_API", CUPTI_CB_DOMAIN_RUNTIME_API},
                         {"RESOURCE", CUPTI_CB_DOMAIN_RESOURCE},
                         {"SYNCHRONIZE", CUPTI_CB_DOMAIN_SYNCHRONIZE},
                         {"NVTX", CUPTI_CB_DOMAIN_NVTX},
                         {"STATE", CUPTI_CB_DOMAIN_STATE}};

template <size_t n>
uint32_t find(const Name (&list)[n], const std::string& name) {
  for (const Name& entry : list) {
    if (name == entry.name) return entry.number;
  }
  throw std::out_of_range("no such name: " + name);
}

CUcontext currentContext() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context;
}

}  // namespace

CUpti_CallbackDomain domainNumber(const std::string& name) {
  return static_cast<CUpti_CallbackDomain>(find(kDomains, name));
}

uint32_t callbackNumber(CUpti_CallbackDomain domain, const std::string& name) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return find(kResources, name);
  if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) return find(kSynchronize, name);
  for (uint32_t cbid = 1; cbid < 2000; ++cbid) {
    const char* text = nullptr;
    if (cuptiGetCallbackName(domain, cbid, &text) == CUPTI_SUCCESS && text != nullptr && name == text) return cbid;
  }
  throw std::out_of_range("no function " + name);
}

std::string callbackText(CUpti_CallbackDomain domain, uint32_t cbid, const char* function) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    for (const Name& n : kResources) {
      if (n.number == cbid) return n.name;
    }
  } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
    for (const Name& n : kSynchronize) {
      if (n.number == cbid) return n.name;
    }
  }
  return function != nullptr ? function : std::to_string(cbid);
}

CUptiResult Player::subscribe(const Step&) { return cuptiSubscribe(&subscriber_, called, this); }

CUptiResult Player::unsubscribe(const Step&) {
  for (auto& [name, watch] : watches_) {
    if (watch.on) watch.until = truth_.calls;
    watch.on = false;
  }
  return cuptiUnsubscribe(subscriber_);
}

// EnableCallback DOMAIN NAME [0]
CUptiResult Player::enableCallback(const Step& s) {
  const CUpti_CallbackDomain domain = domainNumber(s.arguments.at(0));
  const bool on = s.arguments.size() < 3 || s.arguments[2] != "0";
  const CUptiResult result = cuptiEnableCallback(on, subscriber_, domain, callbackNumber(domain, s.arguments.at(1)));
  std::string function = s.arguments[1];
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) function = function.substr(0, function.rfind("_v"));
  Watch& watch = watches_[s.arguments[0] + "." + function];
  if (result == CUPTI_SUCCESS && on && !watch.on) watch.from = truth_.calls, watch.underWay = truth_.lastCall;
  if (result == CUPTI_SUCCESS && !on && watch.on) watch.until = truth_.calls;
  watch.on = on && result == CUPTI_SUCCESS;
  return result;
}

CUptiResult Player::enableDomain(const Step& s) {
  const bool on = s.arguments.size() < 2 || s.arguments[1] != "0";
  const CUptiResult result = cuptiEnableDomain(on, subscriber_, domainNumber(s.arguments.at(0)));
  Watch& watch = watches_[s.arguments[0]];
  watch.wholeDomain = true;
  if (on && !watch.on) watch.from = truth_.calls, watch.underWay = truth_.lastCall;
  if (!on && watch.on) watch.until = truth_.calls;
  watch.on = on && result == CUPTI_SUCCESS;
  return result;
}

CUptiResult Player::enableAllDomains(const Step& s) {
  const bool on = s.arguments.empty() || s.arguments[0] != "0";
  const CUptiResult result = cuptiEnableAllDomains(on, subscriber_);
  for (const Name& domain : kDomains) {
    Watch& watch = watches_[domain.name];
    watch.wholeDomain = true;
    if (on && !watch.on) watch.from = truth_.calls, watch.underWay = truth_.lastCall;
    if (!on && watch.on) watch.until = truth_.calls;
    watch.on = on && result == CUPTI_SUCCESS;
  }
  return result;
}

// GetCallbackName DOMAIN NAME: the number of the name has that name.
CUptiResult Player::callbackName(const Step& s) {
  const CUpti_CallbackDomain domain = domainNumber(s.arguments.at(0));
  const char* name = nullptr;
  const CUptiResult result = cuptiGetCallbackName(domain, callbackNumber(domain, s.arguments.at(1)), &name);
  if (result == CUPTI_SUCCESS && s.arguments[1] != name) wrong(std::string("the name is ") + name);
  return result;
}

CUptiResult Player::timestamp(const Step& s) {
  uint64_t time = 0;
  if (s.function == "DeviceGetTimestamp") {  // from a zero of its own
    const CUptiResult result = cuptiDeviceGetTimestamp(currentContext(), &time);
    if (time == 0) wrong("no time of the device");
    return result;
  }
  const CUptiResult result = cuptiGetTimestamp(&time);
  if (result == CUPTI_SUCCESS && time < uint64_t{1700000000} * 1000000000) wrong("the time is " + std::to_string(time));
  return result;
}

// In a callback of a resource: of its context; otherwise of the current one.
CUptiResult Player::ids(const Step& s) {
  const CUcontext context = resource_ != nullptr ? resource_->context : currentContext();
  uint32_t id = 77, first = 77;
  CUptiResult result;
  if (s.function == "GetDeviceId") {
    result = cuptiGetDeviceId(context, &id);
    if (result == CUPTI_SUCCESS && id > 1) wrong("device " + std::to_string(id));
  } else if (s.function == "GetContextId") {
    result = cuptiGetContextId(context, &id);
    if (result == CUPTI_SUCCESS && (id == 0 || (call_ != nullptr && call_->contextUid != id))) {
      wrong("context " + std::to_string(id));
    }
  } else if (s.function == "GetStreamId") {
    result = cuptiGetStreamId(context, nullptr, &id);
  } else {
    result = cuptiGetStreamIdEx(context, nullptr, 0, &id);
    if (cuptiGetStreamId(context, nullptr, &first) != CUPTI_SUCCESS || first != id) wrong("two ids of one stream");
  }
  return result;
}

// GetGraphExecId within a launch of a graph; GetGraphId and GetGraphNodeId where a graph's node was made.
CUptiResult Player::graphIds(const Step& s) {
  uint32_t id = 0;
  uint64_t node = 0;
  if (s.function == "GetGraphExecId" && call_ != nullptr) {
    const auto* launch = static_cast<const cudaGraphLaunch_v10000_params*>(call_->functionParams);
    const CUptiResult result = cuptiGetGraphExecId(reinterpret_cast<CUgraphExec>(launch->graphExec), &id);
    if (result == CUPTI_SUCCESS && id == 0) wrong("the graph has id 0");
    return result;
  }
  if (resource_ == nullptr) throw std::out_of_range("not in a callback that knows a graph");
  const auto* graph = static_cast<const CUpti_GraphData*>(resource_->resourceDescriptor);
  CUptiResult result;
  if (s.function == "GetGraphNodeId") {
    result = cuptiGetGraphNodeId(graph->node, &node);
    if (result == CUPTI_SUCCESS && node == 0) wrong("the node has id 0");
  } else if (s.function == "GetGraphExecId") {
    result = cuptiGetGraphExecId(graph->graphExec, &id);
  } else {
    result = cuptiGetGraphId(graph->graph, &id);
    if (result == CUPTI_SUCCESS && id == 0) wrong("the graph has id 0");
  }
  return result;
}

CUptiResult Player::version(const Step&) {
  uint32_t version = 0;
  const CUptiResult result = cuptiGetVersion(&version);
  if (version != 130001) wrong("version " + std::to_string(version));
  return result;
}

CUptiResult Player::resultString(const Step& s) {
  const char* text = nullptr;
  const CUptiResult result = s.function == "GetErrorMessage" ? cuptiGetErrorMessage(CUPTI_ERROR_INVALID_KIND, &text)
                                                             : cuptiGetResultString(CUPTI_ERROR_INVALID_KIND, &text);
  if (text == nullptr || *text == 0 ||
      (s.function == "GetResultString" && std::strcmp(text, "CUPTI_ERROR_INVALID_KIND") != 0)) {
    wrong("the text is wrong");
  }
  return result;
}

CUptiResult Player::lastError(const Step&) { return cuptiGetLastError(); }

CUptiResult Player::threadIdType(const Step& s) {
  CUpti_ActivityThreadIdType type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  if (s.function == "GetThreadIdType") {
    const CUptiResult result = cuptiGetThreadIdType(&type);
    if ((type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) != systemThreads_) wrong("another thread id type");
    return result;
  }
  systemThreads_ = s.arguments.at(0) == "SYSTEM";
  return cuptiSetThreadIdType(systemThreads_ ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                             : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
}

CUptiResult Player::nvtx(const Step& s) {
  if (s.function == "InitializeInjectionNvtx2") {
    return InitializeInjectionNvtx2(nvtxTable_) == 1 ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
  }
  return s.function == "NvtxInitialize" ? cuptiNvtxInitialize(nvtxTable_) : cuptiNvtxInitialize2(nvtxTable_);
}

CUptiResult Player::openAcc(const Step&) {
  static int registered;
  registered = 0;
  const auto add = +[](int, void*, int) { ++registered; };
  const CUptiResult result =
      cuptiOpenACCInitialize(reinterpret_cast<void*>(add), reinterpret_cast<void*>(add), reinterpret_cast<void*>(add));
  if (result == CUPTI_SUCCESS && registered != 25) wrong(std::to_string(registered) + " events of OpenACC");
  return result;
}

CUptiResult Player::chipName(const Step&) {
  CUpti_Device_GetChipName_Params params = {CUpti_Device_GetChipName_Params_STRUCT_SIZE, nullptr, 0, nullptr};
  const CUptiResult result = cuptiDeviceGetChipName(&params);
  if (result == CUPTI_SUCCESS && (params.pChipName == nullptr || *params.pChipName == 0)) wrong("no chip name");
  return result;
}

// Of the module that was just loaded.
CUptiResult Player::cubinCrc(const Step&) {
  if (resource_ == nullptr) throw std::out_of_range("not in a callback that knows a module");
  const auto* module = static_cast<const CUpti_ModuleResourceData*>(resource_->resourceDescriptor);
  if (module->moduleId == 0 || module->cubinSize == 0 || module->pCubin == nullptr) wrong("a module without an image");
  CUpti_GetCubinCrcParams params{};
  params.size = CUpti_GetCubinCrcParamsSize;
  params.cubinSize = module->cubinSize;
  params.cubin = module->pCubin;
  const CUptiResult result = cuptiGetCubinCrc(&params);
  if (result == CUPTI_SUCCESS && params.cubinCrc == 0) wrong("a checksum of 0");
  return result;
}

CUptiResult Player::sourceCorrelation(const Step&) {
  CUpti_GetSassToSourceCorrelationParams params{};
  params.size = CUpti_GetSassToSourceCorrelationParamsSize;
  const char nothing[64] = {};
  params.cubin = nothing;
  params.cubinSize = sizeof nothing;
  params.functionName = "f";
  return cuptiGetSassToSourceCorrelation(&params);
}

CUptiResult Player::computeCrc(const Step&) {
  return cuptiRegisterComputeCrcCallback([](const void*, size_t size, uint64_t* crc) { *crc = size; });
}

CUptiResult Player::finalize(const Step&) {
  for (auto& [name, k] : kinds_) {
    if (k.on) k.until = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
    k.on = false;
  }
  for (auto& [name, watch] : watches_) {
    if (watch.on) watch.until = truth_.calls;
    watch.on = false;
  }
  return cuptiFinalize();
}

// A call of CUDA's that clients make in between.
CUptiResult Player::synchronize(const Step&) {
  return cuCtxSynchronize() == CUDA_SUCCESS ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

void CUPTIAPI Player::called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  static_cast<Player*>(self)->callback(domain, cbid, data);
}

void Player::callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  const char* domainName = "";
  for (const Name& d : kDomains) {
    if (d.number == static_cast<uint32_t>(domain)) domainName = d.name;
  }
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    const auto* call = static_cast<const CUpti_CallbackData*>(data);
    const std::string key = std::string(domainName) + "." + call->functionName;
    const bool enter = call->callbackSite == CUPTI_API_ENTER;
    auto& [entries, exits] = called_[key];
    ++(enter ? entries : exits);
    if (enter) {
      *call->correlationData = 0x5000 + call->correlationId;
    } else if (*call->correlationData != 0x5000 + call->correlationId) {
      // Unless the subscription began within the call.
      if (entries >= exits) wrong(key + ": the slot of the call is not kept");
    }
    if (key == "RUNTIME_API.cudaLaunchKernel") {
      if (call->symbolName == nullptr || std::string(call->symbolName) != "_Z4fillPjjj") wrong(key + ": no symbol");
      if (call->contextUid == 0 || call->functionParams == nullptr) wrong(key + ": no context or parameters");
    }
    if (!enter && call->functionReturnValue == nullptr) wrong(key + ": no return value");
    const CUpti_CallbackData* outer = call_;
    call_ = call;
    runSteps((enter ? "enter:" : "exit:") + key);
    call_ = outer;
    return;
  }
  const std::string name = callbackText(
      domain, cbid, domain == CUPTI_CB_DOMAIN_NVTX ? static_cast<const CUpti_NvtxData*>(data)->functionName : nullptr);
  ++called_[std::string(domainName) + "." + name].first;
  const CUpti_ResourceData* outer = resource_;
  resource_ = domain == CUPTI_CB_DOMAIN_RESOURCE ? static_cast<const CUpti_ResourceData*>(data) : nullptr;
  runSteps("at:" + name);
  resource_ = outer;
}

}  // namespace clients
