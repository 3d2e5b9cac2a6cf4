// SPDX-License-Identifier: Apache-2.0
#include "sample.h"

#include <cupti.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/spool/reader.h"
#include "cli/spool/record_layout.h"
#include "cli/spool/writer.h"

namespace sonde::test {
namespace {

class Maker {
 public:
  explicit Maker(spool::Writer& writer) : writer_(writer) {}

  template <typename R>
  void add(R record) {
    const auto layout = spool::recordLayout(record.kind);
    ASSERT_EQ(layout.size, sizeof record);
    const spool::RecordHeader header{sizeof record, 0};
    const size_t at = payload_.size();
    payload_.resize(at + sizeof header + spool::padded(sizeof record));
    std::memcpy(&payload_[at], &header, sizeof header);
    std::memcpy(&payload_[at + sizeof header], &record, sizeof record);
  }

  const char* text(const char* s) { return reinterpret_cast<const char*>(uint64_t{writer_.stringId(s)}); }

  void api(bool runtime, uint32_t cbid, uint64_t start, uint64_t end, uint32_t correlation) {
    CUpti_ActivityAPI r{};
    r.kind = runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    r.cbid = cbid;
    r.start = kOrigin + start;
    r.end = kOrigin + end;
    r.processId = 4242;
    r.threadId = 4243;
    r.correlationId = correlation;
    add(r);
  }
  void kernel(const char* name, uint64_t start, uint64_t end, uint32_t correlation, uint32_t stream, int grid,
              int block) {
    CUpti_ActivityKernel10 r{};
    r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    r.start = kOrigin + start;
    r.end = end != 0 ? kOrigin + end : 0;
    r.contextId = 1;
    r.streamId = stream;
    r.correlationId = correlation;
    r.gridX = grid, r.gridY = r.gridZ = 1;
    r.blockX = block, r.blockY = r.blockZ = 1;
    r.registersPerThread = 24;
    r.dynamicSharedMemory = 1024;
    r.name = text(name);
    add(r);
  }
  void copy(uint8_t kind, uint64_t start, uint64_t end, uint32_t correlation, uint64_t bytes, bool pinned) {
    const uint8_t host = pinned ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    CUpti_ActivityMemcpy6 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    r.copyKind = kind;
    r.srcKind = kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ? host : uint8_t{CUPTI_ACTIVITY_MEMORY_KIND_DEVICE};
    r.dstKind = kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ? uint8_t{CUPTI_ACTIVITY_MEMORY_KIND_DEVICE} : host;
    r.bytes = bytes;
    r.start = kOrigin + start;
    r.end = kOrigin + end;
    r.contextId = 1;
    r.streamId = 7;
    r.correlationId = correlation;
    add(r);
  }
  void marker(uint32_t flag, uint32_t id, uint64_t time, const char* name, const char* domain) {
    CUpti_ActivityMarker2 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MARKER;
    r.flags = static_cast<CUpti_ActivityFlag>(flag);
    r.timestamp = kOrigin + time;
    r.id = id;
    r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    r.objectId.pt.processId = 4242;
    r.objectId.pt.threadId = 4243;
    r.name = text(name);
    r.domain = text(domain);
    add(r);
  }
  void apiName(uint32_t domain, uint32_t cbid, const char* name) {
    const uint32_t entry[4] = {domain, cbid, writer_.stringId(name), 0};
    writer_.flushStrings();
    writer_.block(spool::BlockType::Names, entry, sizeof entry);
  }
  void write() {
    writer_.flushStrings();
    writer_.block(spool::BlockType::Records, payload_.data(), payload_.size());
    payload_.clear();
  }

 private:
  spool::Writer& writer_;
  std::vector<unsigned char> payload_;
};

}  // namespace

std::string sampleSpool(const SampleOptions& options) {
  std::string folder = (std::filesystem::temp_directory_path() / "sonde-sample-XXXXXX").string();
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/sample.spool";
  {
    spool::Writer writer;
    EXPECT_TRUE(writer.open(path, CUPTI_API_VERSION));
    Maker m(writer);
    const std::string process =
        "{\"pid\":" + std::to_string(options.pid) +
        ",\"ppid\":1,\"executable\":\"/opt/bin/app\",\"arguments\":[\"app\",\"-n\",\"3\"],\"host\":\"node1\","
        "\"cupti\":\"/opt/lib64/libcupti.so.13\",\"cupti_version\":130001,\"start\":1699999999999999000}";
    writer.block(spool::BlockType::Process, process.data(), process.size());
    CUpti_ActivityDevice5 device{};
    device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    device.name = m.text("Test GPU");
    device.computeCapabilityMajor = 9;
    device.numMultiprocessors = 4;
    device.globalMemorySize = 8'000'000'000;
    device.coreClockRate = 1'500'000;
    m.add(device);
    const uint32_t runtime = CUPTI_CB_DOMAIN_RUNTIME_API;
    m.apiName(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, "cudaMalloc_v3020");
    m.apiName(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, "cudaMemcpy_v3020");
    m.apiName(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020, "cudaMemset_v3020");
    m.apiName(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000");
    m.apiName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel");
    // Delivered out of order, as buffers of several threads are.
    m.kernel("_Z5saxpyifPfS_", 160'000, 165'000, 3, 7, 256, 128);
    m.kernel("_Z5saxpyifPfS_", 180'000, 187'000, 4, 7, 256, 128);
    m.kernel("_ZN3lib4scanIiLi4EEEvPT_", 200'000, 230'000, 5, 13, 16, 1024);
    m.copy(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 30'000, 130'000, 2, 4'000'000, false);
    m.copy(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, 260'000, 290'000, 7, 600'000, true);
    CUpti_ActivityMemset4 set{};
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set.bytes = 1'000;
    set.start = kOrigin + 243'000;
    set.end = kOrigin + 244'000;
    set.contextId = 1;
    set.streamId = 7;
    set.correlationId = 6;
    set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.add(set);
    if (options.unfinishedKernel) m.kernel("_Z5saxpyifPfS_", 295'000, 0, 8, 7, 256, 128);
    m.write();
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, 0, 10'000, 1);
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, 20'000, 140'000, 2);
    m.api(false, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 150'500, 152'500, 3);
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 150'000, 153'000, 3);
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 170'000, 174'000, 4);
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 190'000, 195'000, 5);
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020, 240'000, 242'000, 6);
    m.api(true, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, 250'000, 300'000, 7);
    m.marker(CUPTI_ACTIVITY_FLAG_MARKER_START, 1, 5'000, "load", "io");
    m.marker(CUPTI_ACTIVITY_FLAG_MARKER_END, 1, 25'000, nullptr, nullptr);
    m.marker(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, 2, 50'000, "here", nullptr);
    m.marker(CUPTI_ACTIVITY_FLAG_MARKER_START, 3, 100'000, "step", nullptr);
    m.marker(CUPTI_ACTIVITY_FLAG_MARKER_END, 3, 200'000, nullptr, nullptr);
    m.write();
    if (options.dropped != 0) writer.block(spool::BlockType::Dropped, &options.dropped, sizeof options.dropped);
    if (options.end) {
      const spool::EndBlock end{0, -1, kOrigin + 400'000, 20, options.dropped};
      writer.block(spool::BlockType::End, &end, sizeof end);
    }
  }
  std::string content, error;
  EXPECT_TRUE(spool::readWholeFile(path, &content, &error)) << error;
  std::filesystem::remove_all(folder);
  // The header has the test's own process id.
  std::memcpy(content.data() + offsetof(spool::FileHeader, pid), &options.pid, sizeof options.pid);
  return content;
}

Trace readOrDie(const std::string& content) {
  Trace trace;
  std::string error;
  EXPECT_TRUE(spool::readSpool({reinterpret_cast<const unsigned char*>(content.data()), content.size()}, trace, &error))
      << error;
  trace.finish();
  return trace;
}

Trace sampleTrace(const SampleOptions& options) { return readOrDie(sampleSpool(options)); }

}  // namespace sonde::test
