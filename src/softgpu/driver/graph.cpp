// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/graph.h"

#include <algorithm>
#include <map>

#include "platform/tools_api.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/condition.h"

namespace sonde::softgpu::driver {

std::mutex& graphLock() {
  static std::mutex* mutex = new std::mutex();
  return *mutex;
}

namespace {
std::atomic<uint64_t> nodeIds{0};
std::atomic<uint32_t> graphIds{0};
}  // namespace
uint64_t nextGraphNodeId() { return nodeIds.fetch_add(1, std::memory_order_relaxed) + 1; }
uint32_t nextGraphId() { return graphIds.fetch_add(1, std::memory_order_relaxed) + 1; }

GraphNode::GraphNode(Graph* g, NodeWork w) : Object(kType), graph(g), work(std::move(w)), id(nextGraphNodeId()) {}
GraphNode::~GraphNode() = default;

bool UserObject::release(unsigned n) {
  unsigned now = count_.load();
  do {
    if (now < n) return false;
  } while (!count_.compare_exchange_weak(now, now - n));
  if (now == n) {
    destroy_(user_);
    HandleTable::retire(this);
  }
  return true;
}

Graph::Graph() : Object(kType), id(nextGraphId()) {}

Graph::~Graph() {
  for (const Condition& c : conditions) exec::destroyCondition(c.handle);
  for (auto& [object, count] : userObjects) object->release(count);
}

Ref<GraphNode> Graph::add(NodeWork work, const std::vector<GraphNode*>& dependencies) {
  auto node = make<GraphNode>(this, std::move(work));
  if (!HandleTable::publish(node.get())) return {};
  for (GraphNode* d : dependencies) {
    if (std::find(node->dependencies.begin(), node->dependencies.end(), d) != node->dependencies.end()) continue;
    node->dependencies.push_back(d);
    d->dependents.push_back(node.get());
  }
  nodes.push_back(node);
  return node;
}

void Graph::remove(GraphNode* node) {
  for (GraphNode* d : node->dependencies) std::erase(d->dependents, node);
  for (GraphNode* d : node->dependents) {
    std::erase(d->dependencies, node);
    d->edges.erase(node);
  }
  node->graph = nullptr;
  HandleTable::retire(node);
  std::erase_if(nodes, [&](auto& n) { return n.get() == node; });
}

bool Graph::sorted(std::vector<GraphNode*>& order) const {
  std::map<const GraphNode*, size_t> open;
  for (auto& n : nodes) open[n.get()] = n->dependencies.size();
  order.clear();
  std::vector<bool> taken(nodes.size(), false);
  // Nodes are few and mostly made in order already: passes over the list.
  while (order.size() < nodes.size()) {
    const size_t before = order.size();
    for (size_t i = 0; i < nodes.size(); i++) {
      if (taken[i] || open[nodes[i].get()] != 0) continue;
      taken[i] = true;
      order.push_back(nodes[i].get());
      for (GraphNode* d : nodes[i]->dependents) open[d]--;
    }
    if (order.size() == before) return false;
  }
  return true;
}

Ref<Graph> Graph::clone() const {
  auto copy = make<Graph>();
  if (!HandleTable::publish(copy.get())) return {};
  copy->original = handle();
  std::map<const GraphNode*, GraphNode*> twin;
  for (auto& n : nodes) {
    NodeWork work = n->work;
    if (work.child) {
      work.child = work.child->clone();
      if (work.child) work.child->ownedByNode = true;
    }
    if (!work.bodies.empty()) {
      auto handles = std::make_shared<std::vector<CUgraph>>();
      for (Ref<Graph>& body : work.bodies) {
        body = body->clone();
        if (!body) return {};
        body->ownedByNode = true;
        handles->push_back(static_cast<CUgraph>(body->handle()));
      }
      work.bodyHandles = std::move(handles);
    }
    Ref<GraphNode> c = copy->add(std::move(work), {});
    if (!c) return {};
    c->original = n->handle();
    c->originalId = n->id;
    twin[n.get()] = c.get();
  }
  for (auto& n : nodes)
    for (GraphNode* d : n->dependencies) {
      twin[n.get()]->dependencies.push_back(twin[d]);
      twin[d]->dependents.push_back(twin[n.get()]);
      if (const auto edge = n->edges.find(d); edge != n->edges.end()) twin[n.get()]->edges[twin[d]] = edge->second;
    }
  for (auto& [object, count] : userObjects) {
    object->retain(count);
    copy->userObjects.emplace_back(object, count);
  }
  return copy;
}

bool Graph::hasMemoryNodes() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Ref<GraphNode>& n) {
    return n->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
           (n->work.child && n->work.child->hasMemoryNodes());
  });
}

void Graph::dissolve() {
  for (auto& n : nodes) {
    if (n->work.child) {
      n->work.child->dissolve();
      HandleTable::retire(n->work.child.get());
    }
    for (const Ref<Graph>& body : n->work.bodies) {
      body->dissolve();
      HandleTable::retire(body.get());
    }
    n->graph = nullptr;
    HandleTable::retire(n.get());
  }
  nodes.clear();
}

GraphExec::GraphExec(uint32_t graph, cuuint64_t f) : Object(kType), id(nextGraphId()), graphId(graph), flags(f) {}
GraphExec::~GraphExec() = default;

namespace {

GraphExec::Step* findIn(std::vector<GraphExec::Step>& steps, void* node) {
  for (auto& s : steps) {
    if (s.node == node) return &s;
    for (auto& body : s.bodies)
      if (GraphExec::Step* inner = findIn(body, node)) return inner;
  }
  return nullptr;
}

}  // namespace

GraphExec::Step* GraphExec::find(void* node) { return findIn(steps, node); }

void reportGraph(uint32_t event, Graph* graph, GraphNode* node, GraphExec* exec) {
  if (!tools::wants(SONDE_INTEREST_RESOURCE)) return;
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  if (Context* context = peekContext()) {
    r.context = context->handle();
    r.contextUid = context->uid();
    r.deviceId = context->device()->ordinal;
  }
  if (graph) {
    r.handle = graph->handle();
    r.id = graph->id;
    r.parent = graph->original;
  }
  if (node) {
    r.parent = graph ? graph->handle() : nullptr;
    r.handle = node->handle();
    r.nodeId = node->id;
    r.originalNodeId = node->originalId;
    r.nodeType = node->work.type;
  }
  if (exec) {
    r.parent = graph ? graph->handle() : nullptr;
    r.handle = exec->handle();
    r.id = exec->id;
  }
  tools::reportResource(r);
}

}  // namespace sonde::softgpu::driver
