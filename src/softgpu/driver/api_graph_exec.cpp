// SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: making and launching them. A launch enqueues
// its nodes one after the other on the stream, in an order that keeps all
// dependencies.
#include <algorithm>
#include <map>

#include "platform/clock.h"
#include "platform/tools_api.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/graph_nodes.h"
#include "softgpu/driver/memory_op.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/condition.h"

namespace sonde::softgpu::driver {

CUresult findExec(CUgraphExec handle, Ref<GraphExec>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<GraphExec>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool expandSteps(const Graph& graph, std::vector<size_t> entry, std::vector<GraphExec::Step>& steps,
                 std::vector<size_t>& last) {
  std::vector<GraphNode*> order;
  if (!graph.sorted(order)) return false;
  std::map<const GraphNode*, std::vector<size_t>> ends;  // the steps that finish a node
  for (GraphNode* n : order) {
    std::vector<size_t> before = n->dependencies.empty() ? entry : std::vector<size_t>();
    for (GraphNode* d : n->dependencies) before.insert(before.end(), ends[d].begin(), ends[d].end());
    if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      std::vector<size_t> inner;
      if (!expandSteps(*n->work.child, before, steps, inner)) return false;
      ends[n] = inner.empty() ? before : inner;
    } else {
      steps.push_back({n->id, n->handle(), n->work, true, before});
      for (const Ref<Graph>& body : n->work.bodies) {
        std::vector<GraphExec::Step> inner;
        std::vector<size_t> ignored;
        if (!expandSteps(*body, {}, inner, ignored)) return false;
        steps.back().bodies.push_back(std::move(inner));
      }
      ends[n] = {steps.size() - 1};
    }
  }
  for (GraphNode* n : order)
    if (n->dependents.empty()) last.insert(last.end(), ends[n].begin(), ends[n].end());
  return true;
}

namespace {

// Bodies of conditional nodes may hold kernels, copies, sets, empty, child and
// conditional nodes. The first step of one that is something else.
const GraphExec::Step* unfitForBody(const std::vector<GraphExec::Step>& steps, bool inBody = false) {
  for (const GraphExec::Step& s : steps) {
    const CUgraphNodeType t = s.work.type;
    const bool fits = t == CU_GRAPH_NODE_TYPE_KERNEL || t == CU_GRAPH_NODE_TYPE_MEMCPY ||
                      t == CU_GRAPH_NODE_TYPE_MEMSET || t == CU_GRAPH_NODE_TYPE_EMPTY ||
                      t == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    if (inBody && !fits) return &s;
    for (const auto& body : s.bodies)
      if (const GraphExec::Step* unfit = unfitForBody(body, true)) return unfit;
  }
  return nullptr;
}

CUresult instantiate(CUgraphExec* out, CUgraph hGraph, cuuint64_t flags, CUgraphInstantiateResult* why,
                     CUgraphNode* errorNode = nullptr) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  constexpr cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                               CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
  if (!out || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  auto exec = make<GraphExec>(graph->id, flags);
  {
    std::lock_guard lock(graphLock());
    std::vector<size_t> last;
    exec->conditions = graph->conditions;
    if (graph->hasMemoryNodes()) {
      if (graph->memoryExec) {
        say("a graph that allocates or frees memory can be instantiated once at a time");
        return CUDA_ERROR_NOT_SUPPORTED;
      }
      exec->memoryGraph = graph->handle();
    }
    if (!expandSteps(*graph, {}, exec->steps, last)) {
      if (why) *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const GraphExec::Step* unfit = unfitForBody(exec->steps)) {
      if (why) *why = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
      if (errorNode) *errorNode = static_cast<CUgraphNode>(unfit->node);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (exec->memoryGraph) graph->memoryExec = exec->id;
  }
  if (!HandleTable::publish(exec.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  reportGraph(SONDE_RESOURCE_GRAPH_EXEC_CREATED, graph.get(), nullptr, exec.get());
  if (why) *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  *out = static_cast<CUgraphExec>(exec->handle());
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuGraphInstantiateWithFlags)(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return instantiate(phGraphExec, hGraph, flags, nullptr);
}

DRIVER_API(cuGraphInstantiateWithParams)
(CUgraphExec* phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  p->hErrNode_out = nullptr;
  p->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  return instantiate(phGraphExec, hGraph, p->flags, &p->result_out, &p->hErrNode_out);
}

DRIVER_API(cuGraphExecDestroy)(CUgraphExec hGraphExec) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraphExec, exec)) return e;
  reportGraph(SONDE_RESOURCE_GRAPH_EXEC_DESTROY_STARTING, nullptr, nullptr, exec.get());
  if (exec->memoryGraph) {
    const Ref<Graph> graph = HandleTable::find<Graph>(exec->memoryGraph);
    std::lock_guard lock(graphLock());
    if (graph && graph->memoryExec == exec->id) graph->memoryExec = 0;
  }
  return HandleTable::retire(exec.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGraphExecGetFlags)(CUgraphExec hGraphExec, cuuint64_t* flags) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraphExec, exec)) return e;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphUpload)(CUgraphExec hGraph, CUstream hStream) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraph, exec)) return e;
  Ref<Stream> stream;
  return resolveStream(hStream, stream);
}

namespace {

void runConditional(Stream& stream, GraphExec& exec, const GraphExec::Step& step, uint32_t correlation);

// The command of a step; null: there is nothing to do on the stream. Bodies of
// conditional nodes are made and run when the stream comes to them.
CUresult makeCommand(Stream& stream, GraphExec& exec, const GraphExec::Step& step, uint32_t correlation,
                     Command*& command) {
  const NodeWork& w = step.work;
  command = nullptr;
  switch (static_cast<int>(w.type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      LaunchShape shape = w.shape;
      if (!shape.sms) shape.sms = stream.sms;
      if (const CUresult e = prepareLaunch(*w.function, shape)) return e;
      command = stream.newCommand(CommandKind::kernel);
      LaunchPlan& plan = command->launch;
      std::copy(w.params.begin(), w.params.end(), plan.params.resize(w.params.size()));
      plan.function = w.function;
      plan.grid = shape.grid;
      plan.block = shape.block;
      plan.cluster = shape.cluster;
      plan.dynamicShared = shape.dynamicShared;
      plan.cooperative = shape.cooperative;
      plan.carveout = shape.carveout;
      plan.clusterPolicy = shape.clusterPolicy;
      plan.accessPolicy = shape.accessPolicy;
      plan.sms = shape.sms;
      plan.priority = shape.hasPriority ? shape.priority : stream.priority();
      command->gridId = nextGridId();
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      command = stream.newCommand(CommandKind::copy);
      if (const CUresult e = planBox(w.copy, *w.context, command->copy)) {
        stream.giveBack(command);
        return e;
      }
      command->copy.async = true;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      SetPlan plan;
      if (const CUresult e = planFill(w.set.dst, w.set.pitch, w.set.elementSize, w.set.value, w.set.width, w.set.height,
                                      *w.context, plan))
        return e;
      command = stream.newCommand(CommandKind::set);
      command->set = plan;
      command->set.async = true;
      break;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      command = stream.newCommand(CommandKind::hostFunction);
      command->hostFunction = w.host.fn;
      command->user = w.host.userData;
      break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      std::vector<MemoryOp> plan;
      if (const CUresult e = planMemoryOps(w.memoryOps, *w.context, plan)) return e;
      command = stream.newCommand(CommandKind::memoryOp);
      command->memoryOps = std::move(plan);
      break;
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      command = stream.newCommand(CommandKind::conditional);
      command->body = [keep = Ref<GraphExec>(&exec), step, correlation](Stream& s) {
        runConditional(s, *keep, step, correlation);
      };
      break;
    default: return CUDA_SUCCESS;  // empty, and what enqueue does itself
  }
  command->correlationId = correlation;
  command->graphId = exec.id;
  command->graphNodeId = step.nodeId;
  if (tools::wants(SONDE_INTEREST_LATENCY)) command->queuedNs = platform::nowNs();
  return CUDA_SUCCESS;
}

// On the stream's thread: everything of a body, in order.
void runSteps(Stream& stream, GraphExec& exec, const std::vector<GraphExec::Step>& steps, uint32_t correlation) {
  for (const GraphExec::Step& step : steps) {
    if (stream.context()->error()) return;
    Command* command = nullptr;
    if (const CUresult e = makeCommand(stream, exec, step, correlation, command)) {
      stream.context()->fail(e, "a node in the body of a conditional node could not be launched");
      return;
    }
    if (!command) continue;
    announce(stream, *command);
    execute(stream, *command);
    stream.giveBack(command);
  }
}

void runConditional(Stream& stream, GraphExec& exec, const GraphExec::Step& step, uint32_t correlation) {
  auto value = [&] { return exec::conditionValue(step.work.condition); };
  switch (step.work.conditionType) {
    case CU_GRAPH_COND_TYPE_IF:
      if (value())
        runSteps(stream, exec, step.bodies[0], correlation);
      else if (step.bodies.size() > 1)
        runSteps(stream, exec, step.bodies[1], correlation);
      break;
    case CU_GRAPH_COND_TYPE_WHILE:
      while (value() && !stream.context()->error()) runSteps(stream, exec, step.bodies[0], correlation);
      break;
    default:
      if (const uint32_t v = value(); v < step.bodies.size()) runSteps(stream, exec, step.bodies[v], correlation);
      break;
  }
}

CUresult enqueue(Stream& stream, GraphExec& exec, GraphExec::Step& step, uint32_t correlation) {
  const NodeWork& w = step.work;
  switch (static_cast<int>(w.type)) {
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return recordOn(stream, *w.event, correlation);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: waitOn(stream, *w.event, correlation); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      if (!w.memory->take()) {
        if (!(exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)) return CUDA_ERROR_INVALID_VALUE;
        w.memory->give();
        w.memory->take();
      }
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: {
      const auto memory = GraphMemory::find(w.freed);
      return memory && memory->give() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default: break;
  }
  Command* command = nullptr;
  if (const CUresult e = makeCommand(stream, exec, step, correlation, command)) return e;
  if (command) submit(stream, command);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuGraphLaunch)(CUgraphExec hGraph, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraph, exec)) return e;
  if (stream->capture.load()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const uint32_t correlation = currentCorrelation();
  const bool whole = tools::wants(SONDE_INTEREST_GRAPH);
  auto mark = [&](CommandKind kind) {
    Command* command = stream->newCommand(kind);
    command->correlationId = correlation;
    command->graphId = exec->id;  // as the nodes have it
    command->address = exec->id;
    submit(*stream, command);
  };
  std::lock_guard lock(exec->mutex);
  for (const auto& step : exec->steps)
    if (step.work.memory && step.work.memory->inUse() &&
        !(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
      return CUDA_ERROR_INVALID_VALUE;  // what the launch before allocated was not freed
  if (whole) mark(CommandKind::graphBegin);
  if (!exec->conditions.empty()) {
    Command* command = stream->newCommand(CommandKind::conditional);
    command->body = [conditions = exec->conditions](Stream&) {
      for (const Condition& c : conditions)
        if (c.assignDefault) exec::setCondition(c.handle, c.defaultValue);
    };
    submit(*stream, command);
  }
  for (auto& step : exec->steps) {
    if (!step.enabled) continue;
    if (const CUresult e = enqueue(*stream, *exec, step, correlation)) return e;
  }
  if (whole) mark(CommandKind::graphEnd);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
