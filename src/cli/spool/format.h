// SPDX-License-Identifier: Apache-2.0
// The spool: the file in which the collector puts the records of one process,
// and the trace file (*.sonde), which is several spools one after the other.
//
//   FileHeader, then blocks: BlockHeader, payload, zeros up to 8 bytes.
//
// A block is written with one write(2) call, so that whatever ends the process
// costs at most the block that was being written. Both the header and the
// payload carry a checksum; a reader that meets damage searches for the next
// block. All numbers are little-endian. A new FileHeader where a block could
// start begins the spool of another process.
#ifndef SONDE_CLI_SPOOL_FORMAT_H_
#define SONDE_CLI_SPOOL_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace sonde::spool {

inline constexpr char kFileMagic[8] = {'S', 'O', 'N', 'D', 'E', 'S', 'P', 'L'};
inline constexpr uint32_t kVersion = 1;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerSize;  // of this structure; a newer writer may append
  uint32_t recordAbi;   // CUPTI_API_VERSION of the records' layouts
  uint32_t pid;
  uint64_t reserved;
};
static_assert(sizeof(FileHeader) == 32);

inline constexpr uint32_t kBlockMagic = 0x4b4c4253;  // "SBLK"

enum class BlockType : uint16_t {
  Process = 1,         // JSON object, see collector/collector.cpp
  Records = 2,         // RecordHeader + record, again and again; string pointers are string ids
  Strings = 3,         // {u32 id, u32 length, bytes, zeros up to 8}; id 0 is the NULL pointer
  Names = 4,           // {u32 domain, u32 cbid, u32 string id, u32 0}: names of API functions
  Dropped = 5,         // u64: records lost since the last such block
  End = 6,             // EndBlock: the process ended in order
  Skipped = 7,         // {u32 kind, u32 0, u64 count}: records of kinds that the collector does not keep
  Counters = 8,        // CounterHeader + CounterEntry …: event values of one kernel launch
  CounterResults = 9,  // JSON, written by `sonde run`: what the counters mean and the metrics made of them
  Locations = 10,      // LocationEntry …: where instructions lie that records point to
  LocationNames = 11,  // JSON, written by `sonde run`: functions and source lines of these
  ModuleText = 12,     // {u32 module id, u32 string id}: the PTX text that a module was made from
};

struct BlockHeader {
  uint32_t magic;
  uint16_t type;
  uint16_t flags;
  uint32_t payloadSize;
  uint32_t payloadCrc;
  uint32_t sequence;   // 0, 1, 2 … within one spool
  uint32_t headerCrc;  // of the five fields before
};
static_assert(sizeof(BlockHeader) == 24);

inline constexpr uint32_t kMaxPayload = 256u << 20;

struct RecordHeader {
  uint32_t size;  // of the record that follows, a multiple of 8
  uint32_t flags;
};
static_assert(sizeof(RecordHeader) == 8);

inline constexpr uint32_t kAllInstances = 0xffffffffu;

struct CounterHeader {
  uint32_t device, context, correlation;
  uint32_t kernel;      // string id of the mangled name
  uint64_t start, end;  // cuptiGetTimestamp before the launch and after the kernel
  uint32_t entries;
  uint32_t reserved;
};
static_assert(sizeof(CounterHeader) == 40);

struct CounterEntry {
  uint32_t event;     // string id of its name
  uint32_t instance;  // of its domain, or kAllInstances: their sum
  uint64_t value;     // CUPTI_EVENT_OVERFLOW: more than the counter holds
};
static_assert(sizeof(CounterEntry) == 16);

struct LocationEntry {
  uint64_t pc;
  uint64_t offset;  // in the module's file, as its symbols have it
  uint32_t module;  // string id of the path
  uint32_t symbol;  // string id of the exported symbol before it, or 0
};
static_assert(sizeof(LocationEntry) == 24);

enum class EndReason : uint32_t { Exit = 0, Signal = 1, Exec = 2, QuickExit = 3 };

struct EndBlock {
  uint32_t reason;   // EndReason
  int32_t value;     // signal number, or exit status where it is known, else -1
  uint64_t time;     // cuptiGetTimestamp
  uint64_t records;  // kept in this spool
  uint64_t dropped;  // in all
};
static_assert(sizeof(EndBlock) == 32);

constexpr size_t padded(size_t n) { return (n + 7) & ~size_t{7}; }

// CRC-32 (polynomial 0xedb88320), as in zlib's crc32(0, data, size).
uint32_t crc32(const void* data, size_t size, uint32_t seed = 0);

}  // namespace sonde::spool

#endif  // SONDE_CLI_SPOOL_FORMAT_H_
