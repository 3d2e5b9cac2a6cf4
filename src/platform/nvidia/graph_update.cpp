// SPDX-License-Identifier: Apache-2.0
//
// Calls that change a traced executable graph, or ask about its nodes: they are
// sent on with the nodes of the copy.
#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_ids.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {

void setEvents(CUgraphExec exec, TracedGraph& graph, const EventSet& events) {
  for (size_t i = 0; i < graph.eventNodes.size(); ++i)
    own.cuGraphExecEventRecordNodeSetEvent(exec, graph.eventNodes[i], events.events[i]);
}

namespace {

#define CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

template <class Params>
const Params& as(const void* params) {
  return *static_cast<const Params*>(params);
}

template <class F>
F original(uint32_t cbid) {
  return reinterpret_cast<F>(driverOriginal[cbid]);
}

// What the nodes of an executable graph do from now on, from place `first` on.
void takeOver(TracedGraph& graph, size_t first, const TracedGraph& other) {
  if (graph.nodes.size() < first + other.nodes.size()) return;
  for (size_t i = 0; i < other.nodes.size(); ++i) {
    graph.nodes[first + i].function = other.nodes[i].function;
    graph.nodes[first + i].work = other.nodes[i].work;
  }
}

}  // namespace

// The application brings a new graph of the same shape: its copy gets event
// nodes in the same way.
int32_t updateGraphExec(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  const auto& p = as<cuGraphExecUpdate_v2_params>(params);  // both begin so
  const std::shared_ptr<TracedGraph> graph = tracedGraph(p.hGraphExec);
  if (graph == nullptr || p.hGraph == nullptr) return run();
  if (graph->copy == nullptr) {
    TracedGraph other;
    other.context = graph->context;
    std::lock_guard lock(graph->mutex);
    if (graph->ring != nullptr) {
      other.ring = graph->ring;
      GraphChanges changes;
      std::string why;
      const bool sameShape = stampGraph(p.hGraph, other, changes, &why) && other.stamps == graph->stamps &&
                             other.nodes.size() == graph->nodes.size();
      if (!sameShape) changes.undo();
      const int32_t result = run();  // else the driver says that the shapes differ
      changes.undo();
      if (sameShape && result == CUDA_SUCCESS) takeOver(*graph, 0, other);
      return result;
    }
    const int32_t result = run();
    if (result == CUDA_SUCCESS) describeGraph(p.hGraph, other);
    takeOver(*graph, 0, other);
    return result;
  }
  CUgraph copy = nullptr;
  if (own.cuGraphClone(&copy, p.hGraph) != CUDA_SUCCESS) return run();
  std::lock_guard lock(graph->mutex);
  TracedGraph other;
  other.context = graph->context;
  EventSet events = *graph->current;
  const size_t known = events.events.size();
  std::string why;
  int32_t result;
  if (!instrumentGraph(copy, other, events, &why) || other.eventNodes.size() != known ||
      other.nodes.size() != graph->nodes.size()) {
    result = run();  // the driver says that the shapes differ
  } else if (cbid == CBID(cuGraphExecUpdate_v2)) {
    result = original<CUresult (*)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)>(cbid)(p.hGraphExec, copy,
                                                                                              p.resultInfo);
    // Nodes of the copy mean nothing to the application.
    if (result != CUDA_SUCCESS && p.resultInfo != nullptr) {
      auto mine = [&](CUgraphNode& node) {
        for (CUgraphNode candidate : nodesOf(p.hGraph)) {
          CUgraphNode twin = nullptr;
          if (own.cuGraphNodeFindInClone(&twin, candidate, copy) == CUDA_SUCCESS && twin == node) {
            node = candidate;
            return;
          }
        }
        node = nullptr;
      };
      mine(p.resultInfo->errorNode);
      mine(p.resultInfo->errorFromNode);
    }
  } else {
    const auto& v1 = as<cuGraphExecUpdate_params>(params);
    result = original<CUresult (*)(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*)>(cbid)(
        v1.hGraphExec, copy, v1.hErrorNode_out, v1.updateResult_out);
    if (result != CUDA_SUCCESS && v1.hErrorNode_out != nullptr) *v1.hErrorNode_out = nullptr;
  }
  for (size_t i = known; i < events.events.size(); ++i) graph->context->giveEvent(events.events[i]);
  if (result == CUDA_SUCCESS) {
    takeOver(*graph, 0, other);
    setEvents(p.hGraphExec, *graph, *graph->current);
  }
  dropCopy(copy);
  return result;
}

namespace {

// The copy's node of one of the application's; nullptr: none.
CUgraphNode twinOf(const TracedGraph& graph, CUgraphNode node) {
  if (graph.copy == nullptr) return node;
  CUgraphNode twin = nullptr;
  if (!own.cuGraphNodeFindInClone) return nullptr;
  if (own.cuGraphNodeFindInClone(&twin, node, graph.copy) == CUDA_SUCCESS) return twin;
  for (const TracedChild& child : graph.children)
    if (own.cuGraphNodeFindInClone(&twin, node, child.graph) == CUDA_SUCCESS) return twin;
  return nullptr;
}

// A child graph of an executable one is replaced by another of the same shape.
// `set` does it with a graph; the graph's mutex is held.
int32_t replaceChild(CUgraphExec exec, TracedGraph& graph, CUgraphNode node, CUgraph with,
                     FunctionRef<int32_t(CUgraph)> set) {
  const TracedChild* child = nullptr;
  for (const TracedChild& c : graph.children)
    if (c.node == node) child = &c;
  if (child == nullptr || with == nullptr) return set(with);
  TracedGraph other;
  other.context = graph.context;
  if (graph.ring != nullptr) {
    other.ring = graph.ring;
    GraphChanges changes;
    std::string why;
    const bool sameShape = stampGraph(with, other, changes, &why, static_cast<uint32_t>(child->firstEvent)) &&
                           other.stamps == child->firstEvent + child->eventCount && other.nodes.size() == child->count;
    if (!sameShape) changes.undo();
    const int32_t result = set(with);
    changes.undo();
    if (sameShape && result == CUDA_SUCCESS) takeOver(graph, child->first, other);
    return result;
  }
  if (graph.copy == nullptr) {
    const int32_t result = set(with);
    if (result == CUDA_SUCCESS) describeGraph(with, other);
    if (other.nodes.size() == child->count) takeOver(graph, child->first, other);
    return result;
  }
  CUgraph copy = nullptr;
  if (own.cuGraphClone(&copy, with) != CUDA_SUCCESS) return set(with);
  EventSet events;
  const auto from = graph.current->events.begin() + static_cast<ptrdiff_t>(child->firstEvent);
  events.events.assign(from, from + static_cast<ptrdiff_t>(child->eventCount));
  std::string why;
  const bool sameShape = instrumentGraph(copy, other, events, &why) && other.nodes.size() == child->count &&
                         events.events.size() == child->eventCount;
  for (size_t i = child->eventCount; i < events.events.size(); ++i) graph.context->giveEvent(events.events[i]);
  const int32_t result = set(sameShape ? copy : with);  // else the driver says that the shapes differ
  if (sameShape && result == CUDA_SUCCESS) {
    takeOver(graph, child->first, other);
    setEvents(exec, graph, *graph.current);
  }
  dropCopy(copy);
  return result;
}

}  // namespace

// One node of an executable graph is changed or asked about: exec, node, …
int32_t graphNodeCall(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  const auto& head = as<cuGraphNodeSetEnabled_params>(params);
  const std::shared_ptr<TracedGraph> graph = tracedGraph(head.hGraphExec);
  const CUgraphNode node = graph != nullptr ? twinOf(*graph, head.hNode) : nullptr;
  if (node == nullptr) return run();
  const CUgraphExec exec = head.hGraphExec;
  std::lock_guard lock(graph->mutex);
  TracedNode* known = nullptr;
  for (TracedNode& n : graph->nodes)
    if (n.handle == node) known = &n;
  int32_t result;
  TracedNode changed;
  bool isChanged = false;
  switch (cbid) {
    case CBID(cuGraphNodeSetEnabled):
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, unsigned)>(cbid)(exec, node, head.isEnabled);
      if (result == CUDA_SUCCESS && known != nullptr) known->enabled = head.isEnabled != 0;
      return result;
    case CBID(cuGraphNodeGetEnabled):
      return original<CUresult (*)(CUgraphExec, CUgraphNode, unsigned*)>(cbid)(
          exec, node, as<cuGraphNodeGetEnabled_params>(params).isEnabled);
    case CBID(cuGraphExecMemcpyNodeSetParams): {
      const auto& p = as<cuGraphExecMemcpyNodeSetParams_params>(params);
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*, CUcontext)>(cbid)(
          exec, node, p.copyParams, p.ctx);
      if ((isChanged = result == CUDA_SUCCESS)) describeCopyNode(*p.copyParams, *graph, changed);
      break;
    }
    case CBID(cuGraphExecMemsetNodeSetParams): {
      const auto& p = as<cuGraphExecMemsetNodeSetParams_params>(params);
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*, CUcontext)>(cbid)(
          exec, node, p.memsetParams, p.ctx);
      if ((isChanged = result == CUDA_SUCCESS)) describeSetNode(*p.memsetParams, *graph, changed);
      break;
    }
    case CBID(cuGraphExecChildGraphNodeSetParams): {
      auto set = [&](CUgraph child) {
        return original<CUresult (*)(CUgraphExec, CUgraphNode, CUgraph)>(cbid)(exec, node, child);
      };
      return replaceChild(exec, *graph, node, as<cuGraphExecChildGraphNodeSetParams_params>(params).childGraph, set);
    }
    default: {  // one pointer or handle behind the node
      const auto& p = as<cuGraphExecKernelNodeSetParams_v2_params>(params);
      if (cbid == CBID(cuGraphExecNodeSetParams)) {
        const CUgraphNodeParams* n = as<cuGraphExecNodeSetParams_params>(params).nodeParams;
        if (n != nullptr && n->type == CU_GRAPH_NODE_TYPE_GRAPH) {
          auto set = [&](CUgraph child) {
            CUgraphNodeParams with = *n;
            with.graph.graph = child;
            return original<CUresult (*)(CUgraphExec, CUgraphNode, CUgraphNodeParams*)>(cbid)(exec, node, &with);
          };
          return replaceChild(exec, *graph, node, n->graph.graph, set);
        }
      }
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, const void*)>(cbid)(exec, node, p.nodeParams);
      if (result != CUDA_SUCCESS) break;
      if (cbid == CBID(cuGraphExecKernelNodeSetParams_v2)) {
        describeKernelNode(*p.nodeParams, changed);
        isChanged = true;
      } else if (cbid == CBID(cuGraphExecKernelNodeSetParams)) {
        const auto& v1 = *as<cuGraphExecKernelNodeSetParams_params>(params).nodeParams;
        CUDA_KERNEL_NODE_PARAMS v2{};
        v2.func = v1.func;
        v2.gridDimX = v1.gridDimX, v2.gridDimY = v1.gridDimY, v2.gridDimZ = v1.gridDimZ;
        v2.blockDimX = v1.blockDimX, v2.blockDimY = v1.blockDimY, v2.blockDimZ = v1.blockDimZ;
        v2.sharedMemBytes = v1.sharedMemBytes;
        describeKernelNode(v2, changed);
        isChanged = true;
      } else if (cbid == CBID(cuGraphExecNodeSetParams)) {
        const CUgraphNodeParams& n = *as<cuGraphExecNodeSetParams_params>(params).nodeParams;
        isChanged = true;
        if (n.type == CU_GRAPH_NODE_TYPE_KERNEL) {
          CUDA_KERNEL_NODE_PARAMS v2{};
          v2.func = n.kernel.func, v2.kern = n.kernel.kern;
          v2.gridDimX = n.kernel.gridDimX, v2.gridDimY = n.kernel.gridDimY, v2.gridDimZ = n.kernel.gridDimZ;
          v2.blockDimX = n.kernel.blockDimX, v2.blockDimY = n.kernel.blockDimY, v2.blockDimZ = n.kernel.blockDimZ;
          v2.sharedMemBytes = n.kernel.sharedMemBytes;
          describeKernelNode(v2, changed);
        } else if (n.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
          describeCopyNode(n.memcpy.copyParams, *graph, changed);
        } else {
          isChanged = false;
        }
      }
      break;
    }
  }
  if (isChanged && known != nullptr) {
    if (known->work.kind == SONDE_WORK_KERNEL && changed.work.kind == SONDE_WORK_KERNEL) {
      // Attributes are not among the parameters.
      const SondeWork& before = known->work;
      changed.work.launchType = before.launchType;
      std::copy_n(before.cluster, 3, changed.work.cluster);
      changed.work.accessPolicy = before.accessPolicy;
      changed.work.clusterSchedulingPolicy = before.clusterSchedulingPolicy;
      LaunchWishes wishes;
      if (before.clusterSchedulingPolicy != 0)
        wishes.clusterPolicy = static_cast<int32_t>(before.clusterSchedulingPolicy);
      wishes.window = static_cast<const CUaccessPolicyWindow*>(before.accessPolicy);
      tellFacts(changed.work, launchFacts(changed.work, wishes, nullptr, kernelInfo(changed.function), nullptr),
                *graph->context);
    }
    known->function = changed.function;
    known->work = changed.work;
  }
  return result;
}

}  // namespace sonde::platform::nvidia
