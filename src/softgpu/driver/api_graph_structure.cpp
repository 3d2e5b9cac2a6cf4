// SPDX-License-Identifier: Apache-2.0
//
// What a graph is made of: nodes, edges, and the objects it keeps alive.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "platform/tools_api.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"

namespace sonde::softgpu::driver {
namespace {

// Fills a list the way all of these functions do: NULL asks for the number.
template <class List, class Get>
CUresult listOut(const List& list, CUgraphNode* out, size_t* count, Get&& get) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!out) {
    *count = list.size();
    return CUDA_SUCCESS;
  }
  const size_t room = *count, n = std::min(room, list.size());
  for (size_t i = 0; i < n; i++) out[i] = get(list[i]);
  for (size_t i = n; i < room; i++) out[i] = nullptr;
  *count = n;
  return CUDA_SUCCESS;
}

CUgraphNode handleOf(const Ref<GraphNode>& n) { return static_cast<CUgraphNode>(n->handle()); }
CUgraphNode rawHandleOf(GraphNode* n) { return static_cast<CUgraphNode>(n->handle()); }
CUgraphEdgeData edgeBetween(const GraphNode* from, const GraphNode* to) {
  const auto edge = to->edges.find(from);
  return edge == to->edges.end() ? CUgraphEdgeData{} : edge->second;
}

}  // namespace

DRIVER_API(cuGraphNodeGetType)(CUgraphNode hNode, CUgraphNodeType* type) {
  Ref<GraphNode> node;
  if (const CUresult e = findNode(hNode, node)) return e;
  if (!type) return CUDA_ERROR_INVALID_VALUE;
  *type = node->work.type;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphDestroyNode)(CUgraphNode hNode) {
  Ref<GraphNode> node;
  if (const CUresult e = findNode(hNode, node)) return e;
  {
    std::lock_guard lock(graphLock());
    if (node->graph && node->graph->hasMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;
  }
  reportGraph(SONDE_RESOURCE_GRAPH_NODE_DESTROY_STARTING, node->graph, node.get(), nullptr);
  std::lock_guard lock(graphLock());
  if (node->graph) node->graph->remove(node.get());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphGetNodes)(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  std::lock_guard lock(graphLock());
  return listOut(graph->nodes, nodes, numNodes, handleOf);
}

DRIVER_API(cuGraphGetRootNodes)(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  std::lock_guard lock(graphLock());
  std::vector<GraphNode*> roots;
  for (auto& n : graph->nodes)
    if (n->dependencies.empty()) roots.push_back(n.get());
  return listOut(roots, rootNodes, numRootNodes, rawHandleOf);
}

DRIVER_API(cuGraphGetEdges_v2)
(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData, size_t* numEdges) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (!numEdges || !from != !to) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  std::vector<std::pair<GraphNode*, GraphNode*>> edges;
  for (auto& n : graph->nodes)
    for (GraphNode* d : n->dependencies) edges.emplace_back(d, n.get());
  if (!from) {
    *numEdges = edges.size();
    return CUDA_SUCCESS;
  }
  const size_t n = std::min(*numEdges, edges.size());
  // Without room for what they are, edges that are not ordinary would look as if they were.
  for (size_t i = 0; !edgeData && i < n; i++)
    if (edges[i].second->edges.count(edges[i].first)) return CUDA_ERROR_LOSSY_QUERY;
  for (size_t i = 0; i < *numEdges; i++) {
    from[i] = i < n ? rawHandleOf(edges[i].first) : nullptr;
    to[i] = i < n ? rawHandleOf(edges[i].second) : nullptr;
    if (edgeData) edgeData[i] = i < n ? edgeBetween(edges[i].first, edges[i].second) : CUgraphEdgeData{};
  }
  *numEdges = n;
  return CUDA_SUCCESS;
}
DRIVER_API(cuGraphGetEdges)(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return cuGraphGetEdges_v2_impl(hGraph, from, to, nullptr, numEdges);
}

namespace {

CUresult neighbours(CUgraphNode hNode, bool before, CUgraphNode* out, CUgraphEdgeData* edgeData, size_t* count) {
  Ref<GraphNode> node;
  if (const CUresult e = findNode(hNode, node)) return e;
  std::lock_guard lock(graphLock());
  const std::vector<GraphNode*>& others = before ? node->dependencies : node->dependents;
  auto edge = [&](GraphNode* other) {
    return before ? edgeBetween(other, node.get()) : edgeBetween(node.get(), other);
  };
  if (count && out && !edgeData)
    for (size_t i = 0; i < std::min(*count, others.size()); i++)
      if (!ordinary(edge(others[i]))) return CUDA_ERROR_LOSSY_QUERY;
  const CUresult result = listOut(others, out, count, rawHandleOf);
  if (!result && out && edgeData)
    for (size_t i = 0; i < *count; i++) edgeData[i] = edge(others[i]);
  return result;
}

bool reaches(GraphNode* from, GraphNode* to) {
  if (from == to) return true;
  for (GraphNode* d : from->dependents)
    if (reaches(d, to)) return true;
  return false;
}

CUresult changeEdges(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges,
                     size_t count, bool add) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  if (!add && count && graph->hasMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < count; i++) {
    const Ref<GraphNode> a = HandleTable::find<GraphNode>(from[i]), b = HandleTable::find<GraphNode>(to[i]);
    if (!a || !b || a->graph != graph.get() || b->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
    const bool there = std::find(b->dependencies.begin(), b->dependencies.end(), a.get()) != b->dependencies.end();
    if (add == there) return CUDA_ERROR_INVALID_VALUE;
    if (add && reaches(b.get(), a.get())) return CUDA_ERROR_INVALID_VALUE;
    if (edges && add)
      if (const CUresult e = checkEdge(edges[i], a->work.type, b->work.type)) return e;
    if (edges && !add) {
      const CUgraphEdgeData is = edgeBetween(a.get(), b.get());
      if (std::memcmp(&is, &edges[i], sizeof is) != 0) return CUDA_ERROR_INVALID_VALUE;
    }
    if (add) {
      if (edges && !ordinary(edges[i])) b->edges[a.get()] = edges[i];
      b->dependencies.push_back(a.get());
      a->dependents.push_back(b.get());
    } else {
      b->edges.erase(a.get());
      std::erase(b->dependencies, a.get());
      std::erase(a->dependents, b.get());
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuGraphNodeGetDependencies)(CUgraphNode hNode, CUgraphNode* dependencies, size_t* numDependencies) {
  return neighbours(hNode, true, dependencies, nullptr, numDependencies);
}
DRIVER_API(cuGraphNodeGetDependencies_v2)
(CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData, size_t* numDependencies) {
  return neighbours(hNode, true, dependencies, edgeData, numDependencies);
}
DRIVER_API(cuGraphNodeGetDependentNodes)(CUgraphNode hNode, CUgraphNode* dependentNodes, size_t* numDependentNodes) {
  return neighbours(hNode, false, dependentNodes, nullptr, numDependentNodes);
}
DRIVER_API(cuGraphNodeGetDependentNodes_v2)
(CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData, size_t* numDependentNodes) {
  return neighbours(hNode, false, dependentNodes, edgeData, numDependentNodes);
}
DRIVER_API(cuGraphAddDependencies)
(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t numDependencies) {
  return changeEdges(hGraph, from, to, nullptr, numDependencies, true);
}
DRIVER_API(cuGraphAddDependencies_v2)
(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edgeData,
 size_t numDependencies) {
  return changeEdges(hGraph, from, to, edgeData, numDependencies, true);
}
DRIVER_API(cuGraphRemoveDependencies)
(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t numDependencies) {
  return changeEdges(hGraph, from, to, nullptr, numDependencies, false);
}
DRIVER_API(cuGraphRemoveDependencies_v2)
(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edgeData,
 size_t numDependencies) {
  return changeEdges(hGraph, from, to, edgeData, numDependencies, false);
}

namespace {

const char* typeName(CUgraphNodeType type) {
  switch (static_cast<int>(type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "memset";
    case CU_GRAPH_NODE_TYPE_HOST: return "host";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "graph";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "empty";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "wait event";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "event record";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "mem alloc";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "mem free";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "batch mem op";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "conditional";
    default: return "unknown";
  }
}

}  // namespace

DRIVER_API(cuGraphDebugDotPrint)(CUgraph hGraph, const char* path, unsigned int) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  std::ofstream out(path);
  if (!out) return CUDA_ERROR_OPERATING_SYSTEM;
  std::lock_guard lock(graphLock());
  out << "digraph graph_" << graph->id << " {\n";
  for (auto& n : graph->nodes) {
    out << "  n" << n->id << " [label=\"" << typeName(n->work.type);
    if (n->work.function) out << "\\n" << n->work.function->info().name;
    out << "\"];\n";
    for (GraphNode* d : n->dependencies) out << "  n" << d->id << " -> n" << n->id << ";\n";
  }
  out << "}\n";
  return out.good() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

// ----------------------------------------------------------- user objects --

DRIVER_API(cuUserObjectCreate)
(CUuserObject* object_out, void* ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!object_out || !destroy || initialRefcount == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  auto object = make<UserObject>(ptr, destroy, initialRefcount);
  if (!HandleTable::publish(object.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *object_out = static_cast<CUuserObject>(object->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuUserObjectRetain)(CUuserObject object, unsigned int count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<UserObject> o = HandleTable::find<UserObject>(object);
  if (!o || count == 0) return CUDA_ERROR_INVALID_VALUE;
  o->retain(count);
  return CUDA_SUCCESS;
}

DRIVER_API(cuUserObjectRelease)(CUuserObject object, unsigned int count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<UserObject> o = HandleTable::find<UserObject>(object);
  return o && count && o->release(count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGraphRetainUserObject)(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  Ref<Graph> g;
  if (const CUresult e = findGraph(graph, g)) return e;
  const Ref<UserObject> o = HandleTable::find<UserObject>(object);
  if (!o || count == 0 || (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE))) return CUDA_ERROR_INVALID_VALUE;
  if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) o->retain(count);
  std::lock_guard lock(graphLock());
  g->userObjects.emplace_back(o, count);
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphReleaseUserObject)(CUgraph graph, CUuserObject object, unsigned int count) {
  Ref<Graph> g;
  if (const CUresult e = findGraph(graph, g)) return e;
  Ref<UserObject> held;
  {
    std::lock_guard lock(graphLock());
    for (auto& [o, n] : g->userObjects)
      if (o->handle() == object && n >= count && count) {
        n -= count;
        held = o;
        break;
      }
    std::erase_if(g->userObjects, [](auto& u) { return u.second == 0; });
  }
  return held && held->release(count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace sonde::softgpu::driver
