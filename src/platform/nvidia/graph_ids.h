// SPDX-License-Identifier: Apache-2.0
//
// Ids of graphs, executable graphs and nodes, and what the listener hears of
// them. A node's id is that of its graph and, in the low half, its number there.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace sonde::platform::nvidia {

uint32_t graphIdOf(CUgraph graph);
// An executable graph has the id of the copy that the driver makes for it.
uint32_t graphExecIdOf(CUgraphExec exec);
void nameGraphExec(CUgraphExec exec, uint32_t id);
uint64_t graphNodeIdOf(CUgraphNode node);

// Gives a node its number; `graph` is where it is.
uint64_t noteGraphNode(CUgraph graph, CUgraphNode node);
void forgetGraph(CUgraph graph);
void forgetGraphNode(CUgraphNode node);
void forgetGraphExec(CUgraphExec exec);

// Nodes of a graph, in the driver's order; also numbers the ones that are new.
// A child graph's are numbered with those of the graph that it is part of:
// `numberedIn`.
std::vector<CUgraphNode> nodesOf(CUgraph graph, CUgraph numberedIn = nullptr);

// The bodies of a conditional node: graphs of the driver's, part of the one that
// the node is in. Their nodes are numbered with that one's.
void noteBodies(CUgraph graph, CUgraphNode node, const CUgraph* bodies, size_t count);
// Empty: not a conditional node, or one made before anybody looked.
std::vector<CUgraph> bodiesOf(CUgraphNode node);

// For the listener; nothing unless it is interested in resources.
void tellGraph(uint32_t event, CUgraph graph, CUgraph original);
void tellGraphNode(uint32_t event, CUgraph graph, CUgraphNode node, CUgraphNode original);
void tellGraphExec(uint32_t event, CUgraphExec exec, CUgraph graph);

}  // namespace sonde::platform::nvidia
