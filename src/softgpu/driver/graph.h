// SPDX-License-Identifier: Apache-2.0
//
// Graphs: templates of work (Graph, GraphNode) and what is launched
// (GraphExec). One lock guards the structure of all of them: building graphs
// is not where time is spent.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/module.h"

namespace sonde::softgpu::driver {

class Graph;
class GraphExec;

std::mutex& graphLock();

class GraphMemory;

// What cuGraphConditionalHandleCreate made.
struct Condition {
  uint64_t handle = 0;
  uint32_t defaultValue = 0;
  bool assignDefault = false;  // at each launch
};

// What a node does. Copyable.
struct NodeWork {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Ref<Context> context;    // of kernels, copies and sets
  Ref<Function> function;  // kernel
  LaunchShape shape;
  std::vector<std::byte> params;  // packed
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS set{};
  CUDA_HOST_NODE_PARAMS host{};
  std::vector<CUstreamBatchMemOpParams> memoryOps;
  Ref<Event> event;
  Ref<Graph> child;  // a copy that belongs to the node
  // Allocation nodes own their memory together with the copies of the node; a node that frees knows the address.
  std::shared_ptr<GraphMemory> memory;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  std::shared_ptr<const std::vector<CUmemAccessDesc>> accesses;  // what allocation.accessDescs points to
  CUdeviceptr freed = 0;
  // Conditional nodes.
  uint64_t condition = 0;
  CUgraphConditionalNodeType conditionType = CU_GRAPH_COND_TYPE_IF;
  std::vector<Ref<Graph>> bodies;
  std::shared_ptr<std::vector<CUgraph>> bodyHandles;  // what phGraph_out points to
};

class GraphNode final : public Object {
 public:
  static constexpr Type kType = Type::graphNode;
  GraphNode(Graph* graph, NodeWork work);
  ~GraphNode() override;

  Graph* graph = nullptr;  // null: destroyed
  NodeWork work;
  const uint64_t id;
  uint64_t originalId = 0;   // of the node it was cloned from
  void* original = nullptr;  // its handle
  std::vector<GraphNode*> dependencies, dependents;
  // Edges from dependencies that are not ordinary ones. Grids of a graph follow one another here, so that they order
  // like any; what they were made as is kept for those who ask.
  std::map<const GraphNode*, CUgraphEdgeData> edges;
  std::vector<void*> paramPointers;  // into work.params, for GetParams
};

// User objects that a graph keeps alive.
class UserObject final : public Object {
 public:
  static constexpr Type kType = Type::userObject;
  UserObject(void* user, CUhostFn destroy, unsigned count)
      : Object(kType), user_(user), destroy_(destroy), count_(count) {}
  void retain(unsigned n) { count_.fetch_add(n); }
  // False: fewer than n references are left.
  bool release(unsigned n);

 private:
  void* const user_;
  const CUhostFn destroy_;
  std::atomic<unsigned> count_;
};

class Graph final : public Object {
 public:
  static constexpr Type kType = Type::graph;
  Graph();
  ~Graph() override;

  const uint32_t id;
  std::vector<Ref<GraphNode>> nodes;
  bool ownedByNode = false;
  void* original = nullptr;
  std::vector<std::pair<Ref<UserObject>, unsigned>> userObjects;
  std::vector<Condition> conditions;
  // Of a graph with memory nodes: the executable graph that there is of it; 0: none.
  uint32_t memoryExec = 0;

  // All below: with graphLock() held.
  Ref<GraphNode> add(NodeWork work, const std::vector<GraphNode*>& dependencies);
  void remove(GraphNode* node);
  // Nodes in an order in which each comes after what it depends on, by order
  // of creation where free. False: there is a cycle.
  bool sorted(std::vector<GraphNode*>& order) const;
  Ref<Graph> clone() const;
  // Nodes that allocate or free, in it or in child graphs: such a graph cannot
  // be copied, and loses neither nodes nor edges.
  bool hasMemoryNodes() const;
  // Nodes lose their handles.
  void dissolve();
};

class GraphExec final : public Object {
 public:
  static constexpr Type kType = Type::graphExec;
  struct Step {
    uint64_t nodeId;
    void* node;  // handle in the template graph
    NodeWork work;
    bool enabled = true;
    std::vector<size_t> dependencies;
    std::vector<std::vector<Step>> bodies{};  // of a conditional node
  };
  GraphExec(uint32_t graphId, cuuint64_t flags);
  ~GraphExec() override;

  const uint32_t id, graphId;
  const cuuint64_t flags;
  void* memoryGraph = nullptr;  // the graph, by handle, whose memoryExec it is
  std::recursive_mutex mutex;   // a listener may be told of work while it is held
  std::vector<Step> steps;      // in launch order, child graphs expanded
  std::vector<Condition> conditions;

  Step* find(void* node);
};

// Tells the listener about a graph, a node or an executable graph.
void reportGraph(uint32_t event, Graph* graph, GraphNode* node, GraphExec* exec);

// Makes graph node ids and graph ids.
uint64_t nextGraphNodeId();
uint32_t nextGraphId();

}  // namespace sonde::softgpu::driver
