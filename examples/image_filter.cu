// SPDX-License-Identifier: Apache-2.0
// Gaussian blur and Sobel edges of a PPM picture (P6, 8 bits). The blur's
// weights sit in constant memory; the edge filter reads a tile with its border
// from shared memory. Without --in a test picture is made.
// Usage: image_filter [--in FILE.ppm] [--out FILE.ppm] [--width W] [--height H]
#include <string>
#include <vector>

#include "example.h"

constexpr int kRadius = 3;
constexpr int kTile = 16;
constexpr int kMost = 16384;  // pixels of width or height: all bytes are counted by an int
__constant__ float weights[2 * kRadius + 1];

struct Image {
  int width = 0, height = 0;
  std::vector<unsigned char> pixels;  // RGB, row by row
};

__host__ __device__ inline int clampTo(int value, int last) { return value < 0 ? 0 : value > last ? last : value; }

// One direction of the separable blur on RGB bytes; rounds to nearest.
__global__ void blur(const unsigned char* in, unsigned char* out, int width, int height, int dx, int dy) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  for (int channel = 0; channel < 3; ++channel) {
    float sum = 0.0f;
    for (int k = -kRadius; k <= kRadius; ++k) {
      int sx = clampTo(x + k * dx, width - 1), sy = clampTo(y + k * dy, height - 1);
      sum = fmaf(weights[k + kRadius], static_cast<float>(in[(sy * width + sx) * 3 + channel]), sum);
    }
    out[(y * width + x) * 3 + channel] = static_cast<unsigned char>(sum + 0.5f);
  }
}

// The luminance gradient's size, in whole numbers.
__global__ void edges(const unsigned char* in, unsigned char* out, int width, int height) {
  __shared__ int tile[kTile + 2][kTile + 2];
  for (int i = threadIdx.y * kTile + threadIdx.x; i < (kTile + 2) * (kTile + 2); i += kTile * kTile) {
    int tx = i % (kTile + 2), ty = i / (kTile + 2);
    int x = clampTo(static_cast<int>(blockIdx.x) * kTile + tx - 1, width - 1);
    int y = clampTo(static_cast<int>(blockIdx.y) * kTile + ty - 1, height - 1);
    const unsigned char* p = in + (y * width + x) * 3;
    tile[ty][tx] = (77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8;
  }
  __syncthreads();
  int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  if (x >= width || y >= height) return;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  int gx = tile[ty - 1][tx + 1] + 2 * tile[ty][tx + 1] + tile[ty + 1][tx + 1] - tile[ty - 1][tx - 1] -
           2 * tile[ty][tx - 1] - tile[ty + 1][tx - 1];
  int gy = tile[ty + 1][tx - 1] + 2 * tile[ty + 1][tx] + tile[ty + 1][tx + 1] - tile[ty - 1][tx - 1] -
           2 * tile[ty - 1][tx] - tile[ty - 1][tx + 1];
  int size = abs(gx) + abs(gy);
  unsigned char grey = static_cast<unsigned char>(size > 255 ? 255 : size);
  for (int channel = 0; channel < 3; ++channel) out[(y * width + x) * 3 + channel] = grey;
}

// The next number of a header, after white space and comments; -1: there is none.
static int headerNumber(FILE* file) {
  int c = std::fgetc(file), value = -1;
  while (c == '#' || (c != EOF && std::strchr(" \t\r\n", c))) {
    while (c == '#' && (c = std::fgetc(file)) != EOF && c != '\n') c = '#';
    c = std::fgetc(file);
  }
  for (; c >= '0' && c <= '9' && value < 100000; c = std::fgetc(file)) value = (value < 0 ? 0 : value * 10) + c - '0';
  return value;  // the one character behind it is read
}

// Null, or what is wrong with the file.
static const char* readPpm(const char* path, Image* image) {
  FILE* file = std::fopen(path, "rb");
  if (!file) return "cannot be opened";
  const char* wrong = nullptr;
  if (std::fgetc(file) != 'P' || std::fgetc(file) != '6') {
    wrong = "is no binary PPM (it does not begin with P6)";
  } else {
    image->width = headerNumber(file);
    image->height = headerNumber(file);
    const int maximum = headerNumber(file);
    if (image->width < 1 || image->height < 1 || image->width > kMost || image->height > kMost)
      wrong = "has no width and height from 1 to 16384";
    else if (maximum != 255)
      wrong = "has not 8 bits a colour (the maximum is not 255)";
  }
  if (!wrong) {
    image->pixels.resize(static_cast<size_t>(image->width) * image->height * 3);
    if (std::fread(image->pixels.data(), 1, image->pixels.size(), file) != image->pixels.size())
      wrong = "ends before its last pixel";
  }
  std::fclose(file);
  return wrong;
}

static bool writePpm(const char* path, const Image& image) {
  FILE* file = std::fopen(path, "wb");
  if (!file) return false;
  std::fprintf(file, "P6\n%d %d\n255\n", image.width, image.height);
  bool ok = std::fwrite(image.pixels.data(), 1, image.pixels.size(), file) == image.pixels.size();
  return std::fclose(file) == 0 && ok;
}

static Image testPicture(int width, int height) {
  Image image;
  image.width = width;
  image.height = height;
  image.pixels.resize(static_cast<size_t>(width) * height * 3);
  Random random(23);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      bool square = ((x / 24) + (y / 24)) % 2 == 0;
      unsigned char* p = &image.pixels[(static_cast<size_t>(y) * width + x) * 3];
      p[0] = static_cast<unsigned char>(square ? 220 : 40 + random.next() % 16);
      p[1] = static_cast<unsigned char>(255 * x / width);
      p[2] = static_cast<unsigned char>(255 * y / height);
    }
  return image;
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Gaussian blur and Sobel edges of a PPM picture",
                 "[--in FILE.ppm] [--out FILE.ppm] [--width W] [--height H]");
  const char* inPath = textOption(argc, argv, "--in", nullptr);
  const char* outPath = textOption(argc, argv, "--out", nullptr);
  Image image;
  if (inPath) {
    if (const char* wrong = readPpm(inPath, &image)) {
      std::fprintf(stderr, "%s %s\n", inPath, wrong);
      return 2;
    }
  } else {
    image = testPicture(option(argc, argv, "--width", 200, 1, kMost), option(argc, argv, "--height", 150, 1, kMost));
  }
  const int width = image.width, height = image.height;
  const size_t bytes = image.pixels.size();

  float kernel[2 * kRadius + 1], total = 0.0f;
  for (int k = -kRadius; k <= kRadius; ++k) total += kernel[k + kRadius] = std::exp(-0.5f * k * k / (1.5f * 1.5f));
  for (float& weight : kernel) weight /= total;
  CHECK(cudaMemcpyToSymbol(weights, kernel, sizeof(kernel)));

  unsigned char *deviceA, *deviceB;
  CHECK(cudaMalloc(&deviceA, bytes));
  CHECK(cudaMalloc(&deviceB, bytes));
  CHECK(cudaMemcpy(deviceA, image.pixels.data(), bytes, cudaMemcpyHostToDevice));
  dim3 block(kTile, kTile), grid((width + kTile - 1) / kTile, (height + kTile - 1) / kTile);
  blur<<<grid, block>>>(deviceA, deviceB, width, height, 1, 0);
  blur<<<grid, block>>>(deviceB, deviceA, width, height, 0, 1);
  CHECK(cudaGetLastError());
  std::vector<unsigned char> blurred(bytes);
  CHECK(cudaMemcpy(blurred.data(), deviceA, bytes, cudaMemcpyDeviceToHost));
  edges<<<grid, block>>>(deviceA, deviceB, width, height);
  CHECK(cudaGetLastError());
  Image result;
  result.width = width;
  result.height = height;
  result.pixels.resize(bytes);
  CHECK(cudaMemcpy(result.pixels.data(), deviceB, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(deviceA));
  CHECK(cudaFree(deviceB));

  // The blur again on the host, in the same order of operations: exact.
  std::vector<unsigned char> expected = image.pixels, pass(bytes);
  for (int direction = 0; direction < 2; ++direction) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int channel = 0; channel < 3; ++channel) {
          float sum = 0.0f;
          for (int k = -kRadius; k <= kRadius; ++k) {
            int sx = clampTo(x + (direction == 0 ? k : 0), width - 1);
            int sy = clampTo(y + (direction == 1 ? k : 0), height - 1);
            sum = std::fmaf(kernel[k + kRadius], expected[(static_cast<size_t>(sy) * width + sx) * 3 + channel], sum);
          }
          pass[(static_cast<size_t>(y) * width + x) * 3 + channel] = static_cast<unsigned char>(sum + 0.5f);
        }
    expected = pass;
  }
  long wrongBlur = 0, wrongEdges = 0;
  for (size_t i = 0; i < bytes; ++i) wrongBlur += blurred[i] != expected[i];
  auto grey = [&](int x, int y) {
    const unsigned char* p =
        &expected[(static_cast<size_t>(clampTo(y, height - 1)) * width + clampTo(x, width - 1)) * 3];
    return (77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8;
  };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      int gx = grey(x + 1, y - 1) + 2 * grey(x + 1, y) + grey(x + 1, y + 1) - grey(x - 1, y - 1) - 2 * grey(x - 1, y) -
               grey(x - 1, y + 1);
      int gy = grey(x - 1, y + 1) + 2 * grey(x, y + 1) + grey(x + 1, y + 1) - grey(x - 1, y - 1) - 2 * grey(x, y - 1) -
               grey(x + 1, y - 1);
      int size = std::abs(gx) + std::abs(gy);
      wrongEdges += result.pixels[(static_cast<size_t>(y) * width + x) * 3] != (size > 255 ? 255 : size);
    }
  if (outPath && !writePpm(outPath, result)) {
    std::fprintf(stderr, "cannot write %s\n", outPath);
    return 2;
  }
  std::printf("%d x %d pixels: %ld wrong bytes in the blur, %ld wrong edges\n", width, height, wrongBlur, wrongEdges);
  return verdict("image_filter", wrongBlur == 0 && wrongEdges == 0);
}
