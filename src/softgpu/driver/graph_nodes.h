// SPDX-License-Identifier: Apache-2.0
//
// From the parameter structures of the API to a node's work, with all checks.
#pragma once

#include "softgpu/driver/graph.h"

namespace sonde::softgpu::driver {

CUresult findGraph(CUgraph handle, Ref<Graph>& out);
CUresult findNode(CUgraphNode handle, Ref<GraphNode>& out);
CUresult findExec(CUgraphExec handle, Ref<GraphExec>& out);
// The steps of a graph after those in `entry`; child graphs are expanded in
// place. `last`: the steps that nothing comes after. With graphLock() held. False: a cycle.
bool expandSteps(const Graph& graph, std::vector<size_t> entry, std::vector<GraphExec::Step>& steps,
                 std::vector<size_t>& last);

CUresult kernelWork(const CUDA_KERNEL_NODE_PARAMS& params, NodeWork& work);
CUresult copyWork(const CUDA_MEMCPY3D* params, CUcontext ctx, NodeWork& work);
CUresult setWork(const CUDA_MEMSET_NODE_PARAMS* params, CUcontext ctx, NodeWork& work);
CUresult eventWork(CUevent event, CUgraphNodeType type, NodeWork& work);
// The node gets a copy of the graph.
CUresult childWork(CUgraph graph, NodeWork& work);
// The node gets the graph itself, which is the node's from then on (addNode has succeeded).
CUresult movedChildWork(CUgraph graph, CUgraph parent, NodeWork& work);

CUresult memoryOpWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, NodeWork& work);

// Outputs (the address, the body graphs) go into the parameters.
CUresult allocationWork(CUDA_MEM_ALLOC_NODE_PARAMS& params, NodeWork& work);
CUresult freeWork(CUdeviceptr address, NodeWork& work);
// A node is about to be added: who owns memory, and whether it may be freed there.
CUresult claimMemory(const Graph& graph, const NodeWork& work);
CUresult conditionalWork(CUDA_CONDITIONAL_NODE_PARAMS& params, CUgraph graph, NodeWork& work);

// `edges`: as many as dependencies; null: ordinary ones.
CUresult addNode(CUgraphNode* out, CUgraph hGraph, const CUgraphNode* dependencies, size_t count, NodeWork work,
                 const CUgraphEdgeData* edges = nullptr);
// Whether an edge between nodes of these types may be of this sort.
CUresult checkEdge(const CUgraphEdgeData& edge, CUgraphNodeType from, CUgraphNodeType to);
bool ordinary(const CUgraphEdgeData& edge);

}  // namespace sonde::softgpu::driver
