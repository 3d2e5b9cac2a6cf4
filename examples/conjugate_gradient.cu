// SPDX-License-Identifier: Apache-2.0
// Solves A x = b for a sparse symmetric positive definite A from a Matrix
// Market file, with the method of conjugate gradients. One warp a row for the
// product, dot products by shuffles and one atomic a block.
// Usage: conjugate_gradient [--matrix FILE.mtx] [--iterations MOST]
#include <algorithm>
#include <string>
#include <vector>

#include "example.h"

struct Csr {
  int rows = 0;
  std::vector<int> start, column;
  std::vector<double> value;
};

constexpr int kThreads = 128;
constexpr int kMostRows = 1 << 25;  // a warp each: threads are counted by an int

__device__ double warpSum(double value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

__global__ void multiply(const int* start, const int* column, const double* value, const double* x, double* y,
                         int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  double sum = 0.0;
  for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += value[i] * x[column[i]];
  sum = warpSum(sum);
  if (lane == 0) y[row] = sum;
}

__global__ void dot(const double* x, const double* y, double* result, int n) {
  __shared__ double partial[kThreads / 32];
  double sum = 0.0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i] * y[i];
  sum = warpSum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kThreads / 32; ++w) sum += partial[w];
    atomicAdd(result, sum);
  }
}

// y = a x + b y
__global__ void combine(double a, const double* x, double b, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * y[i];
}

static bool readMatrixMarket(const char* path, Csr* matrix) {
  FILE* file = std::fopen(path, "r");
  if (!file) {
    std::fprintf(stderr, "cannot open %s\n", path);
    return false;
  }
  char line[1024];
  bool symmetric = false, header = false;
  if (std::fgets(line, sizeof line, file) && std::strncmp(line, "%%MatrixMarket matrix coordinate real", 37) == 0) {
    header = true;
    symmetric = std::strstr(line, " symmetric") != nullptr;
    header = symmetric || std::strstr(line, " general") != nullptr;
  }
  int rows = 0, columns = 0, entries = 0;
  while (header && std::fgets(line, sizeof line, file) && line[0] == '%') {
  }
  if (!header || std::sscanf(line, "%d %d %d", &rows, &columns, &entries) != 3 || rows != columns || rows < 1 ||
      rows > kMostRows || entries < 1) {
    std::fprintf(stderr, "%s: not a square real coordinate matrix, general or symmetric, in Matrix Market form\n",
                 path);
    std::fclose(file);
    return false;
  }
  struct Entry {
    int row, column;
    double value;
  };
  std::vector<Entry> all;
  for (int i = 0; i < entries; ++i) {
    Entry e;
    if (std::fscanf(file, "%d %d %lf", &e.row, &e.column, &e.value) != 3 || e.row < 1 || e.row > rows || e.column < 1 ||
        e.column > rows) {
      std::fprintf(stderr, "%s: entry %d of %d is missing or out of range\n", path, i + 1, entries);
      std::fclose(file);
      return false;
    }
    --e.row;
    --e.column;
    all.push_back(e);
    if (symmetric && e.row != e.column) all.push_back({e.column, e.row, e.value});
  }
  std::fclose(file);
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.row != b.row ? a.row < b.row : a.column < b.column; });
  matrix->rows = rows;
  matrix->start.assign(rows + 1, 0);
  for (const Entry& e : all) {
    ++matrix->start[e.row + 1];
    matrix->column.push_back(e.column);
    matrix->value.push_back(e.value);
  }
  for (int row = 0; row < rows; ++row) matrix->start[row + 1] += matrix->start[row];
  return true;
}

template <typename T>
static T* toDevice(const std::vector<T>& data) {
  T* pointer;
  CHECK(cudaMalloc(&pointer, data.size() * sizeof(T)));
  CHECK(cudaMemcpy(pointer, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice));
  return pointer;
}

static double dotProduct(const double* x, const double* y, double* scratch, int n) {
  double result = 0.0;
  CHECK(cudaMemset(scratch, 0, sizeof(double)));
  dot<<<std::min((n + kThreads - 1) / kThreads, 32), kThreads>>>(x, y, scratch, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&result, scratch, sizeof(double), cudaMemcpyDeviceToHost));
  return result;
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Solves A x = b for a sparse symmetric positive definite matrix",
                 "[--matrix FILE.mtx] [--iterations MOST]");
  // The matrix beside this source file, whatever the working directory is.
  std::string beside = __FILE__;
  beside = beside.substr(0, beside.find_last_of('/') + 1) + "poisson.mtx";
  const char* path = textOption(argc, argv, "--matrix", beside.c_str());
  const int most = option(argc, argv, "--iterations", 500);
  Csr matrix;
  if (!readMatrixMarket(path, &matrix)) return 2;
  const int n = matrix.rows;

  // b = A x for a known x, so that the error itself can be checked.
  std::vector<double> truth(n), b(n, 0.0), x(n, 0.0);
  for (int i = 0; i < n; ++i) truth[i] = std::sin(0.1 * i);
  for (int row = 0; row < n; ++row)
    for (int i = matrix.start[row]; i < matrix.start[row + 1]; ++i) b[row] += matrix.value[i] * truth[matrix.column[i]];

  int* start = toDevice(matrix.start);
  int* column = toDevice(matrix.column);
  double* value = toDevice(matrix.value);
  double *deviceX = toDevice(x), *r = toDevice(b), *p = toDevice(b), *ap = toDevice(x), *scratch;
  CHECK(cudaMalloc(&scratch, sizeof(double)));
  const int blocks = (n + kThreads - 1) / kThreads, rowBlocks = (n * 32 + kThreads - 1) / kThreads;
  double rr = dotProduct(r, r, scratch, n);
  const double goal = 1e-20 * rr;
  int iteration = 0;
  while (iteration < most && rr > goal) {
    multiply<<<rowBlocks, kThreads>>>(start, column, value, p, ap, n);
    CHECK(cudaGetLastError());
    const double curvature = dotProduct(p, ap, scratch, n);
    if (!(curvature > 0.0)) {
      std::fprintf(stderr, "%s: the matrix is not positive definite\n", path);
      return 2;
    }
    const double alpha = rr / curvature;
    combine<<<blocks, kThreads>>>(alpha, p, 1.0, deviceX, n);
    combine<<<blocks, kThreads>>>(-alpha, ap, 1.0, r, n);
    CHECK(cudaGetLastError());
    double next = dotProduct(r, r, scratch, n);
    combine<<<blocks, kThreads>>>(1.0, r, next / rr, p, n);
    CHECK(cudaGetLastError());
    rr = next;
    ++iteration;
  }
  CHECK(cudaMemcpy(x.data(), deviceX, n * sizeof(double), cudaMemcpyDeviceToHost));
  for (double* pointer : {value, deviceX, r, p, ap, scratch}) CHECK(cudaFree(pointer));
  CHECK(cudaFree(start));
  CHECK(cudaFree(column));

  double worst = 0.0;
  for (int i = 0; i < n; ++i) worst = larger(worst, std::fabs(x[i] - truth[i]));
  std::printf("%d unknowns, %zu non-zeros: %d iterations%s, worst error %.2e\n", n, matrix.value.size(), iteration,
              rr > goal ? " were not enough" : "", worst);
  return verdict("conjugate_gradient", worst < 1e-7);
}
