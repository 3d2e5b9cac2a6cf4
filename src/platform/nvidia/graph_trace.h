// SPDX-License-Identifier: Apache-2.0
//
// Times of the nodes of a graph. When the application makes a graph executable,
// a copy of it is made executable instead, with an event behind each kernel,
// copy and set, also in its child graphs. The application keeps its handles:
// calls that name a node of its graph together with the executable one are sent
// on with the node of the copy. Graphs with conditional nodes are not copied and
// take no events in their bodies: they get stamps instead (graph_stamps.h), in the
// application's own graph while it is made executable and not longer. A graph
// that allocates memory, or that the device may change or launch, stays as it is:
// its nodes are recorded without times.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "platform/nvidia/function_ref.h"
#include "platform/nvidia/graph_stamps.h"
#include "platform/nvidia/objects.h"
#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

// A kernel, copy or set of an executable graph.
struct TracedNode {
  uint64_t id = 0;
  CUgraphNode handle = nullptr;  // in the copy
  CUfunction function = nullptr;
  SondeWork work{};                   // what does not change from launch to launch
  std::vector<uint32_t> startEvents;  // indices into the events or stamps: it starts behind the last of them
  uint32_t endEvent = 0;
  uint32_t lane = 0;  // nodes that may run at the same time have different ones; 0: the launch's stream
  bool enabled = true;
  bool inBody = false;  // of a condition: how often it runs is seen afterwards
};

// A child graph: its nodes are those from `first` on.
struct TracedChild {
  CUgraphNode node = nullptr;  // in the copy
  CUgraph graph = nullptr;     // the copy's, part of it
  size_t first = 0, count = 0;
  size_t firstEvent = 0, eventCount = 0;
  uint32_t lane = 0;
};

// One event for each event node; a launch has them to itself until its times
// are read.
struct EventSet {
  std::vector<CUevent> events;
  bool busy = false;  // TracedGraph::mutex
};

struct TracedGraph {
  Context* context = nullptr;
  CUgraph copy = nullptr;           // nullptr: not copied, and no times unless there is …
  std::shared_ptr<StampRing> ring;  // … this, and then `stamps` different ones
  uint32_t stamps = 0;
  uint32_t id = 0;
  bool oneLine = true;  // no two nodes run at the same time
  std::vector<TracedChild> children;
  std::vector<uint32_t> lanes{0};                           // their streams' ids; the first is told by the launch
  std::vector<std::pair<CUdeviceptr, size_t>> allocations;  // by its nodes

  std::mutex mutex;  // of what follows
  std::vector<TracedNode> nodes;
  std::vector<CUgraphNode> eventNodes;
  std::vector<std::shared_ptr<EventSet>> sets;
  std::shared_ptr<EventSet> current;  // the one that the executable graph records

  ~TracedGraph();
};

// A launch whose times are still to come.
struct GraphLaunch {
  std::shared_ptr<TracedGraph> graph;
  std::shared_ptr<EventSet> events;
  std::vector<SondeWork> works;  // enabled nodes, with the listener's words …
  std::vector<uint32_t> nodes;   // … and their places in the graph
  SondeWork like{};              // what the works have in common
};

// What was changed in the application's graph.
struct GraphChanges {
  std::vector<CUgraphNode> added;
  struct Edge {
    CUgraph graph;
    CUgraphNode from, to;
    CUgraphEdgeData data;
  };
  std::vector<Edge> removed;
  void undo();
};

// Callback ids of the driver that concern graphs, and those which have to be
// looked at as long as a traced graph exists, also when nobody listens.
std::span<const uint32_t> graphCallbacks();
std::span<const uint32_t> tracedGraphCallbacks();
bool tracedGraphsExist();
// Some stream captures, by what the hooks have seen.
bool captureUnderWay();

// A call of one of them; `run` is the driver's function.
int32_t graphCall(uint32_t cbid, const void* params, FunctionRef<int32_t()> run);

// The traced graph of an executable one; nullptr: not traced.
std::shared_ptr<TracedGraph> tracedGraph(CUgraphExec exec);
// Makes the executable graph record these events.
void setEvents(CUgraphExec exec, TracedGraph& graph, const EventSet& events);
void dropCopy(CUgraph copy);
// cuGraphExecUpdate, and the calls about a node of an executable graph.
int32_t updateGraphExec(uint32_t cbid, const void* params, FunctionRef<int32_t()> run);
int32_t graphNodeCall(uint32_t cbid, const void* params, FunctionRef<int32_t()> run);

// Before a launch: the events that it will record. nullptr: not traced.
std::shared_ptr<TracedGraph> prepareGraphLaunch(CUgraphExec exec, std::shared_ptr<EventSet>* events);
// After it; calls the listener's workEnqueued for each node. `like` has the
// stream, the context and the correlation id.
GraphLaunch* noteGraphLaunch(std::shared_ptr<TracedGraph> graph, std::shared_ptr<EventSet> events,
                             const SondeWork& like);
// The work of one run of a node in a launch.
SondeWork nodeWork(const TracedGraph& graph, const TracedNode& node, const SondeWork& like);
// The times are read, or never will be.
void finishGraphLaunch(GraphLaunch* launch);

// Copies of a graph, with the ids that belong to it, are told to the listener.
void tellClone(CUgraph copy, CUgraph original);

// Fills `graph` from `copy`, adding the event nodes. False: `why`.
bool instrumentGraph(CUgraph copy, TracedGraph& graph, EventSet& events, std::string* why);
bool hasConditions(CUgraph graph);
// The same for a graph with conditional nodes: adds stamps to the graph itself
// and its bodies. `graph` has the ring. `firstStamp`: of a child graph's.
bool stampGraph(CUgraph original, TracedGraph& graph, GraphChanges& changes, std::string* why, uint32_t firstStamp = 0);
// The same without event nodes: what the nodes of the application's graph are.
void describeGraph(CUgraph original, TracedGraph& graph);

}  // namespace sonde::platform::nvidia
