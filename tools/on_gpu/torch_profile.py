# SPDX-License-Identifier: Apache-2.0
"""A small training loop, a second stream and a CUDA graph under torch.profiler: kernels by name and count, and the operator that each belongs to."""
import collections

import torch
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 256, device="cuda")
y = torch.randint(0, 10, (64,), device="cuda")


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()


for _ in range(3):
    step()
torch.cuda.synchronize()
stream = torch.cuda.Stream()
buffer = torch.zeros(64, 64, device="cuda")


def captured():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            buffer.add_(1).mul_(0.5)
    return graph


captured()  # its first time loads code
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as run:
    for _ in range(5):
        step()
    with torch.cuda.stream(stream):
        for _ in range(3):
            x @ x.T
    x.cpu()
    graph = captured()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()

names, links = collections.Counter(), collections.Counter()
for event in run.events():
    if event.device_type == torch.autograd.DeviceType.CUDA:
        names[event.name] += 1
    # Which operator the profiler's own work interrupts is chance.
    for kernel in event.kernels:
        if event.name not in ("Activity Buffer Request", "Resource"):
            links[event.name, kernel.name[:80]] += 1
for name, count in sorted(names.items()):
    print("kernel", count, name[:120])
for (operator, kernel), count in sorted(links.items()):
    print("link", count, operator, "->", kernel)
