// SPDX-License-Identifier: Apache-2.0
//
// Adds event nodes to a copy of a graph, or stamps to the graph itself.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_ids.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {
namespace {

constexpr size_t kMostNodes = 20000;

class Instrument {
 public:
  // `events` and `changes` nullptr: only what the nodes are.
  Instrument(CUgraph copy, CUgraph whole, TracedGraph& graph, EventSet* events, GraphChanges* changes, std::string* why)
      : copy_(copy),
        whole_(whole),
        graph_(graph),
        events_(events),
        changes_(changes),
        why_(why),
        first_(graph.nodes.size()) {}
  bool run(bool inBody = false, uint32_t lane = 0) {
    inBody_ = inBody;
    lane_ = lane;
    return read() && describe() && (!marks() || addMarks()) && doChildren() && doBodies();
  }

 private:
  bool marks() const { return events_ != nullptr || changes_ != nullptr; }
  bool no(const char* why) {
    *why_ = why;
    return false;
  }

  bool read() {
    nodes_ = nodesOf(copy_, whole_);
    if (marks() && graph_.nodes.size() + nodes_.size() > kMostNodes) return no("it has too many nodes");
    size_t count = 0;
    if (!own.cuGraphGetEdges || own.cuGraphGetEdges(copy_, nullptr, nullptr, nullptr, &count) != CUDA_SUCCESS)
      return !marks() || no("the driver does not tell its edges");
    from_.resize(count);
    to_.resize(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count != 0 && own.cuGraphGetEdges(copy_, from_.data(), to_.data(), data.data(), &count) != CUDA_SUCCESS)
      return no("the driver does not tell its edges");
    for (size_t i = 0; i < count; ++i) {
      edges_[{from_[i], to_[i]}] = data[i];
      before_[to_[i]].push_back(from_[i]);
      after_[from_[i]].push_back(to_[i]);
    }
    findLanes();
    return true;
  }

  // A node goes on in the lane of the first of those before it that no other
  // node has gone on from: what shares a lane runs one after the other.
  void findLanes() {
    std::unordered_map<CUgraphNode, size_t> missing;
    std::vector<CUgraphNode> ready;
    static const std::vector<CUgraphNode> kNone;
    auto of = [](const auto& lists, CUgraphNode node) -> const std::vector<CUgraphNode>& {
      const auto at = lists.find(node);
      return at != lists.end() ? at->second : kNone;
    };
    for (CUgraphNode node : nodes_)
      if ((missing[node] = of(before_, node).size()) == 0) ready.push_back(node);
    std::unordered_set<CUgraphNode> continued;
    bool first = true;
    for (size_t i = 0; i < ready.size(); ++i) {
      const CUgraphNode node = ready[i];
      uint32_t lane = ~0u;
      for (CUgraphNode from : of(before_, node))
        if (lane == ~0u && continued.insert(from).second) lane = lanes_[from];
      if (lane == ~0u && first) lane = lane_;
      first = false;
      if (lane == ~0u) {
        lane = static_cast<uint32_t>(graph_.lanes.size());
        graph_.lanes.push_back(newStreamId());
      }
      lanes_[node] = lane;
      for (CUgraphNode to : of(after_, node))
        if (--missing[to] == 0) ready.push_back(to);
    }
  }

  // Copies may name memory that is there only while the graph runs.
  void noteAllocations() {
    for (CUgraphNode node : nodes_) {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      CUDA_MEM_ALLOC_NODE_PARAMS p{};
      if (own.cuGraphNodeGetType(node, &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
          own.cuGraphMemAllocNodeGetParams && own.cuGraphMemAllocNodeGetParams(node, &p) == CUDA_SUCCESS)
        graph_.allocations.emplace_back(p.dptr, p.bytesize);
    }
  }

  bool describe() {
    if (!marks()) noteAllocations();
    for (CUgraphNode node : nodes_) {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      if (own.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return no("the driver does not tell a node's type");
      TracedNode traced;
      traced.handle = node;
      traced.id = graphNodeIdOf(node);
      switch (static_cast<int>(type)) {
        case CU_GRAPH_NODE_TYPE_KERNEL: {
          CUDA_KERNEL_NODE_PARAMS p{};
          if (!own.cuGraphKernelNodeGetParams || own.cuGraphKernelNodeGetParams(node, &p) != CUDA_SUCCESS)
            return no("the driver does not tell a kernel's parameters");
          describeKernelNode(p, traced);
          if (own.cuGraphKernelNodeGetAttribute) {
            CUkernelNodeAttrValue value{};
            if (marks() &&
                own.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
                    CUDA_SUCCESS &&
                value.deviceUpdatableKernelNode.deviceUpdatable != 0)
              return no("the device may change its nodes");
            value = {};
            if (own.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS)
              traced.work.launchType = value.cooperative != 0 ? 1 : 0;
            value = {};
            if (own.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) ==
                CUDA_SUCCESS) {
              traced.work.cluster[0] = value.clusterDim.x;
              traced.work.cluster[1] = value.clusterDim.y;
              traced.work.cluster[2] = value.clusterDim.z;
            }
            describeNodeFacts(node, traced.function, *graph_.context, traced.work);
          }
          break;
        }
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
          CUDA_MEMCPY3D p{};
          if (!own.cuGraphMemcpyNodeGetParams || own.cuGraphMemcpyNodeGetParams(node, &p) != CUDA_SUCCESS)
            return no("the driver does not tell a copy's parameters");
          describeCopyNode(p, graph_, traced);
          break;
        }
        case CU_GRAPH_NODE_TYPE_MEMSET: {
          CUDA_MEMSET_NODE_PARAMS p{};
          if (!own.cuGraphMemsetNodeGetParams || own.cuGraphMemsetNodeGetParams(node, &p) != CUDA_SUCCESS)
            return no("the driver does not tell a set's parameters");
          describeSetNode(p, graph_, traced);
          break;
        }
        case CU_GRAPH_NODE_TYPE_HOST:
        case CU_GRAPH_NODE_TYPE_EMPTY:
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: continue;
        case CU_GRAPH_NODE_TYPE_GRAPH: {
          TracedChild child;
          child.node = node;
          child.lane = lanes_[node];
          if (!own.cuGraphChildGraphNodeGetGraph ||
              own.cuGraphChildGraphNodeGetGraph(node, &child.graph) != CUDA_SUCCESS)
            return no("the driver does not tell a child graph");
          children_.push_back(child);
          continue;
        }
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
          if (!marks()) continue;
          return no("it allocates memory");
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
          if (events_ != nullptr) return no("it has conditional nodes");
          if (changes_ == nullptr) continue;  // how often the body of a condition runs is the device's affair
          bodies_.emplace_back(lanes_[node], bodiesOf(node));
          if (bodies_.back().second.empty())
            debug("the bodies of a conditional node are not recorded: it was made before anybody looked");
          continue;
        default:
          if (!marks()) continue;
          return no("it has nodes of an unknown kind");
      }
      traced.endEvent = 0;
      traced.inBody = inBody_;
      traced.lane = lanes_[node];
      place_[node] = graph_.nodes.size();
      graph_.nodes.push_back(std::move(traced));
    }
    return true;
  }

  bool doChildren() {
    for (TracedChild child : children_) {
      child.first = graph_.nodes.size();
      child.firstEvent = marksSoFar();
      const size_t at = graph_.children.size();
      graph_.children.push_back(child);
      if (!Instrument(child.graph, whole_, graph_, events_, changes_, why_).run(inBody_, child.lane)) return false;
      graph_.children[at].count = graph_.nodes.size() - child.first;
      graph_.children[at].eventCount = marksSoFar() - child.firstEvent;
    }
    return true;
  }

  bool doBodies() {
    for (const auto& [lane, bodies] : bodies_)
      for (CUgraph body : bodies)
        if (!Instrument(body, whole_, graph_, events_, changes_, why_).run(true, lane)) return false;
    return true;
  }

  size_t marksSoFar() const { return changes_ != nullptr ? graph_.stamps : graph_.eventNodes.size(); }

  // Index of the new event or stamp; ~0: failed.
  uint32_t addMark(const std::vector<CUgraphNode>& behind, CUgraphNode* made) {
    const size_t index = marksSoFar();
    if (changes_ != nullptr) {
      if (!addStampNode(*graph_.ring, copy_, behind, static_cast<uint32_t>(index), made)) return ~0u;
      changes_->added.push_back(*made);
      return graph_.stamps++;
    }
    if (events_->events.size() == index) {
      const CUevent event = graph_.context->takeEvent();
      if (event == nullptr) return ~0u;
      events_->events.push_back(event);
    }
    if (own.cuGraphAddEventRecordNode(made, copy_, behind.empty() ? nullptr : behind.data(), behind.size(),
                                      events_->events[index]) != CUDA_SUCCESS)
      return ~0u;
    graph_.eventNodes.push_back(*made);
    return static_cast<uint32_t>(index);
  }

  bool depend(CUgraphNode from, CUgraphNode to) {
    return own.cuGraphAddDependencies(copy_, &from, &to, nullptr, 1) == CUDA_SUCCESS;
  }

  bool addMarks() {
    if (!own.cuGraphAddEventRecordNode || !own.cuGraphAddDependencies || !own.cuGraphRemoveDependencies ||
        !own.cuGraphExecEventRecordNodeSetEvent || !own.cuGraphDestroyNode)
      return no("the driver has no event nodes");
    // Every launch of a graph with stamps begins with the first of them.
    const bool outermost = changes_ != nullptr && !inBody_ && graph_.stamps == 0;
    // No kernel, copy or set: only graphs within it may have some.
    if (graph_.nodes.size() == first_ && !outermost) return true;
    static const char* const kFailed = "the driver does not take event nodes";
    // What starts first starts behind one event.
    uint32_t root = ~0u;
    CUgraphNode rootNode = nullptr;
    size_t roots = 0;
    for (CUgraphNode node : nodes_) {
      if (before_.count(node) != 0) continue;
      ++roots;
      if (rootNode == nullptr && (root = addMark({}, &rootNode)) == ~0u) return no(kFailed);
      if (!depend(rootNode, node)) return no(kFailed);
    }
    if (roots > 1) graph_.oneLine = false;
    for (size_t i = first_; i < graph_.nodes.size(); ++i) {
      TracedNode& traced = graph_.nodes[i];
      CUgraphNode made = nullptr;
      traced.endEvent = addMark({traced.handle}, &made);
      if (traced.endEvent == ~0u) return no(kFailed);
      // Its successors wait for the event instead.
      const auto next = after_.find(traced.handle);
      if (next == after_.end()) continue;
      if (next->second.size() > 1) graph_.oneLine = false;
      for (CUgraphNode to : next->second) {
        // A programmatic dependency becomes a full one: stricter, and the start is known.
        const CUgraphEdgeData& data = edges_[{traced.handle, to}];
        if (own.cuGraphRemoveDependencies(copy_, &traced.handle, &to, &data, 1) != CUDA_SUCCESS) return no(kFailed);
        if (changes_ != nullptr) changes_->removed.push_back({copy_, traced.handle, to, data});
        if (!depend(made, to)) return no(kFailed);
      }
    }
    for (size_t i = first_; i < graph_.nodes.size(); ++i) {
      TracedNode& traced = graph_.nodes[i];
      const auto previous = before_.find(traced.handle);
      if (previous == before_.end()) {
        traced.startEvents = {root};
        continue;
      }
      std::vector<CUgraphNode> untimed;
      for (CUgraphNode from : previous->second) {
        const auto at = place_.find(from);
        if (at != place_.end()) {
          traced.startEvents.push_back(graph_.nodes[at->second].endEvent);
        } else {
          untimed.push_back(from);
        }
      }
      if (untimed.empty()) continue;
      // Something that has no end of its own: an event says when it is over.
      CUgraphNode made = nullptr;
      const uint32_t event = addMark(untimed, &made);
      if (event == ~0u || !depend(made, traced.handle)) return no(kFailed);
      traced.startEvents.push_back(event);
    }
    return true;
  }

  CUgraph copy_, whole_;  // whole_: of which it is a child graph, or itself
  TracedGraph& graph_;
  EventSet* events_;
  GraphChanges* changes_;
  std::string* why_;
  bool inBody_ = false;  // of a conditional node
  uint32_t lane_ = 0;    // that the first node goes on in
  const size_t first_;   // of this graph's own nodes in graph_.nodes; child graphs' come after them
  std::vector<TracedChild> children_;
  std::vector<std::pair<uint32_t, std::vector<CUgraph>>> bodies_;  // of each conditional node, and its lane
  std::vector<CUgraphNode> nodes_, from_, to_;
  std::unordered_map<CUgraphNode, std::vector<CUgraphNode>> before_, after_;
  std::map<std::pair<CUgraphNode, CUgraphNode>, CUgraphEdgeData> edges_;
  std::unordered_map<CUgraphNode, uint32_t> lanes_;
  std::unordered_map<CUgraphNode, size_t> place_;  // in graph_.nodes
};

}  // namespace

bool instrumentGraph(CUgraph copy, TracedGraph& graph, EventSet& events, std::string* why) {
  if (!Instrument(copy, copy, graph, &events, nullptr, why).run()) return false;
  if (graph.nodes.empty()) *why = "it has no kernel, copy or set";
  return !graph.nodes.empty();
}

bool hasConditions(CUgraph graph) {
  for (CUgraphNode node : nodesOf(graph)) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUgraph child = nullptr;
    if (own.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) continue;
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return true;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && own.cuGraphChildGraphNodeGetGraph &&
        own.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS && hasConditions(child))
      return true;
  }
  return false;
}

bool stampGraph(CUgraph original, TracedGraph& graph, GraphChanges& changes, std::string* why, uint32_t firstStamp) {
  graph.stamps = firstStamp;
  if (!Instrument(original, original, graph, nullptr, &changes, why).run()) return false;
  if (graph.nodes.empty()) *why = "it has no kernel, copy or set";
  return !graph.nodes.empty();
}

void GraphChanges::undo() {
  bool good = true;
  for (CUgraphNode node : added) good = own.cuGraphDestroyNode(node) == CUDA_SUCCESS && good;
  for (const Edge& e : removed)
    good = own.cuGraphAddDependencies(e.graph, &e.from, &e.to, &e.data, 1) == CUDA_SUCCESS && good;
  if (!good) debug("a graph could not be put back as it was");
  added.clear();
  removed.clear();
}

void describeGraph(CUgraph original, TracedGraph& graph) {
  std::string why;
  if (!Instrument(original, original, graph, nullptr, nullptr, &why).run())
    debug("some nodes of a graph are not recorded: %s", why.c_str());
}

}  // namespace sonde::platform::nvidia
