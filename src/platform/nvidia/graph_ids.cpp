// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/graph_ids.h"

#include <mutex>
#include <unordered_map>

#include "platform/nvidia/calls.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/lifetimes.h"
#include "platform/nvidia/objects.h"

namespace sonde::platform::nvidia {
namespace {

struct Graph {
  uint32_t id = 0, nodes = 0;
  std::vector<CUgraphNode> known;
  std::vector<CUgraph> parts;
};

struct Ids {
  std::mutex mutex;
  std::unordered_map<CUgraph, Graph> graphs;
  std::unordered_map<CUgraphExec, uint32_t> execs;
  std::unordered_map<CUgraphNode, uint64_t> nodes;
  std::unordered_map<CUgraph, CUgraph> wholes;  // of bodies of conditional nodes
  std::unordered_map<CUgraphNode, std::vector<CUgraph>> bodies;
  uint32_t last = 0, strays = 0;
};
Ids& ids() {
  static Ids& i = *new Ids;
  return i;
}

Graph& graphOf(Ids& all, CUgraph handle) {
  if (const auto at = all.wholes.find(handle); at != all.wholes.end()) handle = at->second;
  Graph& graph = all.graphs[handle];
  if (graph.id == 0) graph.id = ++all.last;
  return graph;
}

// The lock is held.
uint64_t note(Ids& all, Graph& graph, CUgraphNode node) {
  const auto [at, fresh] = all.nodes.try_emplace(node, uint64_t{graph.id} << 32 | graph.nodes);
  if (fresh) {
    ++graph.nodes;
    graph.known.push_back(node);
  }
  return at->second;
}

bool told() { return (interest() & SONDE_INTEREST_RESOURCE) != 0; }

SondeResource resource(uint32_t event) {
  SondeResource r{};
  if (const Context* context = currentContext()) r = describe(*context);
  r.size = sizeof r;
  r.event = event;
  r.handle = r.parent = nullptr;
  r.id = 0;
  return r;
}

void tell(const SondeResource& event) {
  ListenerUse use;
  if (use && use->resource) use->resource(use->self, &event);
}

}  // namespace

uint32_t graphIdOf(CUgraph handle) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  return graphOf(all, handle).id;
}

uint32_t graphExecIdOf(CUgraphExec exec) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  uint32_t& id = all.execs[exec];
  if (id == 0) id = ++all.last;
  return id;
}

void nameGraphExec(CUgraphExec exec, uint32_t id) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  all.execs[exec] = id;
}

uint64_t graphNodeIdOf(CUgraphNode node) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  // One that was made before anybody looked: its graph is not known.
  const auto [at, fresh] = all.nodes.try_emplace(node, all.strays);
  if (fresh) ++all.strays;
  return at->second;
}

uint64_t noteGraphNode(CUgraph graph, CUgraphNode node) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  return note(all, graphOf(all, graph), node);
}

void forgetGraph(CUgraph handle) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  const auto at = all.graphs.find(handle);
  if (at == all.graphs.end()) return;
  for (CUgraphNode node : at->second.known) {
    all.nodes.erase(node);
    all.bodies.erase(node);
  }
  for (CUgraph part : at->second.parts) all.wholes.erase(part);
  all.graphs.erase(at);
}

void noteBodies(CUgraph graph, CUgraphNode node, const CUgraph* bodies, size_t count) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  const auto at = all.wholes.find(graph);
  const CUgraph whole = at != all.wholes.end() ? at->second : graph;
  Graph& known = graphOf(all, whole);
  note(all, known, node);
  all.bodies[node].assign(bodies, bodies + count);
  for (size_t i = 0; i < count; ++i) {
    all.wholes[bodies[i]] = whole;
    known.parts.push_back(bodies[i]);
  }
}

std::vector<CUgraph> bodiesOf(CUgraphNode node) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  const auto at = all.bodies.find(node);
  return at != all.bodies.end() ? at->second : std::vector<CUgraph>();
}

void forgetGraphNode(CUgraphNode node) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  all.nodes.erase(node);
  all.bodies.erase(node);
}

void forgetGraphExec(CUgraphExec exec) {
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  all.execs.erase(exec);
}

std::vector<CUgraphNode> nodesOf(CUgraph graph, CUgraph numberedIn) {
  size_t count = 0;
  if (!own.cuGraphGetNodes || own.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (count == 0 || own.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  nodes.resize(count);
  Ids& all = ids();
  std::lock_guard lock(all.mutex);
  Graph& known = graphOf(all, numberedIn != nullptr ? numberedIn : graph);
  for (CUgraphNode node : nodes) note(all, known, node);
  return nodes;
}

void tellGraph(uint32_t event, CUgraph graph, CUgraph original) {
  if (!told()) return;
  SondeResource r = resource(event);
  r.handle = graph;
  r.id = graphIdOf(graph);
  r.parent = original;
  tell(r);
}

void tellGraphNode(uint32_t event, CUgraph graph, CUgraphNode node, CUgraphNode original) {
  if (!told()) return;
  SondeResource r = resource(event);
  r.handle = node;
  r.parent = graph;
  r.nodeId = graphNodeIdOf(node);
  if (original != nullptr) r.originalNodeId = graphNodeIdOf(original);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (own.cuGraphNodeGetType && own.cuGraphNodeGetType(node, &type) == CUDA_SUCCESS)
    r.nodeType = static_cast<uint32_t>(type);
  r.originalNode = original;
  tell(r);
}

void tellGraphExec(uint32_t event, CUgraphExec exec, CUgraph graph) {
  if (!told()) return;
  SondeResource r = resource(event);
  r.handle = exec;
  r.parent = graph;
  r.id = graphExecIdOf(exec);
  tell(r);
}

}  // namespace sonde::platform::nvidia
