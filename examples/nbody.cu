// SPDX-License-Identifier: Apache-2.0
// Gravitation among n bodies, all pairs, leapfrog steps; positions pass through
// shared memory in tiles. Checked against the same sums in double on the host,
// and by the conservation of momentum.
// Usage: nbody [--n BODIES] [--steps STEPS]
#include <vector>

#include "example.h"

constexpr int kThreads = 128;
constexpr float kSoftening = 0.05f;

// Bodies are (x, y, z, mass).
__global__ void accelerate(const float4* bodies, float4* velocities, int n, float dt) {
  __shared__ float4 tile[kThreads];
  int i = blockIdx.x * kThreads + threadIdx.x;
  float4 own = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += kThreads) {
    int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kThreads; ++k) {
      float4 other = tile[k];
      float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening * kSoftening);
      float pull = other.w * inverse * inverse * inverse;
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    __syncthreads();
  }
  if (i < n) {
    velocities[i].x += dt * ax;
    velocities[i].y += dt * ay;
    velocities[i].z += dt * az;
  }
}

__global__ void drift(float4* bodies, const float4* velocities, int n, float dt) {
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  bodies[i].x += dt * velocities[i].x;
  bodies[i].y += dt * velocities[i].y;
  bodies[i].z += dt * velocities[i].z;
}

struct Body {
  double x, y, z, mass, vx, vy, vz;
};

static void referenceStep(std::vector<Body>& bodies, double dt) {
  for (Body& own : bodies) {
    double ax = 0, ay = 0, az = 0;
    for (const Body& other : bodies) {
      double dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      double r2 = dx * dx + dy * dy + dz * dz + static_cast<double>(kSoftening) * kSoftening;
      double pull = other.mass / (r2 * std::sqrt(r2));
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    own.vx += dt * ax;
    own.vy += dt * ay;
    own.vz += dt * az;
  }
  for (Body& body : bodies) {
    body.x += dt * body.vx;
    body.y += dt * body.vy;
    body.z += dt * body.vz;
  }
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Gravitation among n bodies, all pairs", "[--n BODIES] [--steps STEPS]");
  const int n = option(argc, argv, "--n", 500);
  const int steps = option(argc, argv, "--steps", 3);
  const float dt = 0.001f;
  std::vector<float4> positions(n), velocities(n);
  std::vector<Body> reference(n);
  Random random(17);
  for (int i = 0; i < n; ++i) {
    positions[i] = make_float4(random.unit(), random.unit(), random.unit(), 0.5f + random.unit());
    velocities[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    reference[i] = {positions[i].x, positions[i].y, positions[i].z, positions[i].w, 0, 0, 0};
  }

  float4 *devicePositions, *deviceVelocities;
  CHECK(cudaMalloc(&devicePositions, n * sizeof(float4)));
  CHECK(cudaMalloc(&deviceVelocities, n * sizeof(float4)));
  CHECK(cudaMemcpy(devicePositions, positions.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(deviceVelocities, velocities.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
  const int blocks = (n + kThreads - 1) / kThreads;
  for (int step = 0; step < steps; ++step) {
    accelerate<<<blocks, kThreads>>>(devicePositions, deviceVelocities, n, dt);
    drift<<<blocks, kThreads>>>(devicePositions, deviceVelocities, n, dt);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemcpy(positions.data(), devicePositions, n * sizeof(float4), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(velocities.data(), deviceVelocities, n * sizeof(float4), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(devicePositions));
  CHECK(cudaFree(deviceVelocities));

  for (int step = 0; step < steps; ++step) referenceStep(reference, dt);
  double worst = 0.0, momentum[3] = {0, 0, 0}, scale = 0.0;
  for (int i = 0; i < n; ++i) {
    worst = larger(worst, std::fabs(positions[i].x - reference[i].x));
    worst = larger(worst, std::fabs(positions[i].y - reference[i].y));
    worst = larger(worst, std::fabs(positions[i].z - reference[i].z));
    momentum[0] += positions[i].w * velocities[i].x;
    momentum[1] += positions[i].w * velocities[i].y;
    momentum[2] += positions[i].w * velocities[i].z;
    scale += positions[i].w * std::fabs(velocities[i].x);
  }
  double drifted = std::sqrt(momentum[0] * momentum[0] + momentum[1] * momentum[1] + momentum[2] * momentum[2]) / scale;
  std::printf("%d bodies, %d steps: worst position error %.2e, momentum drift %.2e\n", n, steps, worst, drifted);
  return verdict("nbody", worst < 1e-4 && drifted < 1e-4);
}
