// SPDX-License-Identifier: Apache-2.0
// The tables of the SQLite export, and views with the names and columns that
// scripts written for nsys expect. Times in the tables are nanoseconds since
// the epoch; in the views, since the start of the trace (meta.origin).
#ifndef SONDE_CLI_EXPORTS_SQLITE_SCHEMA_H_
#define SONDE_CLI_EXPORTS_SQLITE_SCHEMA_H_

namespace sonde::exports {

inline constexpr const char* kSqliteTables = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE string (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE process (
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent_pid INTEGER, executable TEXT, arguments TEXT,
  working_directory TEXT, host TEXT, cupti TEXT, cupti_version INTEGER, start INTEGER, end INTEGER,
  end_reason TEXT, records INTEGER NOT NULL, lost_records INTEGER NOT NULL, damaged_bytes INTEGER NOT NULL);
CREATE TABLE thread (process_id INTEGER NOT NULL REFERENCES process(id), tid INTEGER NOT NULL, name TEXT,
  PRIMARY KEY (process_id, tid)) WITHOUT ROWID;
CREATE TABLE device (
  process_id INTEGER NOT NULL REFERENCES process(id), id INTEGER NOT NULL, name TEXT, uuid TEXT,
  compute_capability_major INTEGER, compute_capability_minor INTEGER, memory_bytes INTEGER,
  memory_bandwidth INTEGER, core_clock_khz INTEGER, multiprocessors INTEGER, l2_bytes INTEGER,
  PRIMARY KEY (process_id, id)) WITHOUT ROWID;
CREATE TABLE context (
  process_id INTEGER NOT NULL REFERENCES process(id), id INTEGER NOT NULL, device_id INTEGER NOT NULL,
  null_stream_id INTEGER, PRIMARY KEY (process_id, id)) WITHOUT ROWID;
CREATE TABLE api_call (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id), tid INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL, domain TEXT NOT NULL, name TEXT NOT NULL,
  full_name_id INTEGER NOT NULL REFERENCES string(id), cbid INTEGER NOT NULL, correlation_id INTEGER NOT NULL,
  result INTEGER NOT NULL, nested INTEGER NOT NULL);
CREATE TABLE kernel (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER NOT NULL, device_id INTEGER NOT NULL, context_id INTEGER NOT NULL,
  stream_id INTEGER NOT NULL, correlation_id INTEGER NOT NULL,
  name_id INTEGER NOT NULL REFERENCES string(id), short_name_id INTEGER NOT NULL REFERENCES string(id),
  mangled_name_id INTEGER NOT NULL REFERENCES string(id),
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER,
  registers_per_thread INTEGER, static_shared_bytes INTEGER, dynamic_shared_bytes INTEGER,
  shared_executed_bytes INTEGER, local_bytes_per_thread INTEGER, local_bytes_total INTEGER,
  graph_id INTEGER, graph_node_id INTEGER, queued INTEGER, submitted INTEGER);
CREATE TABLE memcpy (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER NOT NULL, device_id INTEGER NOT NULL, context_id INTEGER NOT NULL,
  stream_id INTEGER NOT NULL, correlation_id INTEGER NOT NULL, bytes INTEGER NOT NULL, kind TEXT NOT NULL,
  copy_kind INTEGER NOT NULL, source_kind INTEGER NOT NULL, destination_kind INTEGER NOT NULL,
  source_device_id INTEGER, destination_device_id INTEGER, async INTEGER NOT NULL, graph_node_id INTEGER);
CREATE TABLE memset (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER NOT NULL, device_id INTEGER NOT NULL, context_id INTEGER NOT NULL,
  stream_id INTEGER NOT NULL, correlation_id INTEGER NOT NULL, bytes INTEGER NOT NULL, value INTEGER NOT NULL,
  memory_kind INTEGER NOT NULL, async INTEGER NOT NULL, graph_node_id INTEGER);
CREATE TABLE graph_launch (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER NOT NULL, device_id INTEGER NOT NULL, context_id INTEGER NOT NULL,
  stream_id INTEGER NOT NULL, correlation_id INTEGER NOT NULL, graph_id INTEGER NOT NULL);
CREATE TABLE nvtx_range (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id), tid INTEGER,
  start INTEGER NOT NULL, end INTEGER, style TEXT NOT NULL, name TEXT, domain TEXT, color INTEGER, category INTEGER);
CREATE TABLE overhead (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id), tid INTEGER,
  start INTEGER NOT NULL, end INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL, correlation_id INTEGER);
CREATE TABLE synchronization (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER NOT NULL, type INTEGER NOT NULL, name TEXT NOT NULL, context_id INTEGER,
  stream_id INTEGER, event_id INTEGER, correlation_id INTEGER);
CREATE TABLE memory_operation (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id), time INTEGER NOT NULL,
  operation TEXT NOT NULL, memory_kind INTEGER NOT NULL, device_id INTEGER, context_id INTEGER, stream_id INTEGER,
  correlation_id INTEGER, address INTEGER, bytes INTEGER);
CREATE TABLE unified_memory (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER, kind INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER, address INTEGER,
  source_id INTEGER, destination_id INTEGER, stream_id INTEGER, flags INTEGER, flags_name TEXT, processors TEXT,
  module TEXT, module_offset INTEGER, function TEXT, source_file TEXT, source_line INTEGER);
CREATE TABLE counter (kind TEXT NOT NULL, name TEXT NOT NULL, description TEXT, domain TEXT, shown INTEGER NOT NULL,
  PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE counted_launch (
  id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process(id),
  start INTEGER NOT NULL, end INTEGER NOT NULL, device_id INTEGER NOT NULL, context_id INTEGER NOT NULL,
  correlation_id INTEGER NOT NULL, name_id INTEGER NOT NULL REFERENCES string(id),
  mangled_name_id INTEGER NOT NULL REFERENCES string(id));
CREATE TABLE counter_value (
  launch_id INTEGER NOT NULL REFERENCES counted_launch(id), kind TEXT NOT NULL, name TEXT NOT NULL,
  instance INTEGER, value);
)sql";

inline constexpr const char* kSqliteViews = R"sql(
CREATE INDEX api_call_correlation ON api_call(process_id, correlation_id);
CREATE INDEX kernel_correlation ON kernel(process_id, correlation_id);
CREATE INDEX memcpy_correlation ON memcpy(process_id, correlation_id);
CREATE INDEX counter_value_name ON counter_value(name, launch_id);
CREATE INDEX memset_correlation ON memset(process_id, correlation_id);
CREATE VIEW CUDA_UM_CPU_PAGE_FAULT_EVENTS AS
  SELECT u.start - (SELECT value FROM meta WHERE key = 'origin') AS start, p.pid << 24 AS globalPid,
    u.address AS address, u.value AS originalFaultPc, u.function AS CpuInstruction, u.module AS module,
    u.module_offset AS unresolvedFaultPc, u.source_file AS sourceFile, u.source_line AS sourceLine
  FROM unified_memory u JOIN process p ON p.id = u.process_id WHERE u.kind = 3;
CREATE VIEW CUDA_UM_GPU_PAGE_FAULT_EVENTS AS
  SELECT u.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    u.end - (SELECT value FROM meta WHERE key = 'origin') AS end, p.pid << 24 AS globalPid, u.source_id AS deviceId,
    u.address AS address, u.value AS numberOfPageFaults, u.flags AS faultAccessType
  FROM unified_memory u JOIN process p ON p.id = u.process_id WHERE u.kind = 4;
CREATE VIEW StringIds AS SELECT id, text AS value FROM string;
CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
  SELECT k.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    k.end - (SELECT value FROM meta WHERE key = 'origin') AS end,
    k.device_id AS deviceId, k.context_id AS contextId, k.stream_id AS streamId, k.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, k.name_id AS demangledName, k.short_name_id AS shortName,
    k.mangled_name_id AS mangledName, k.registers_per_thread AS registersPerThread,
    k.grid_x AS gridX, k.grid_y AS gridY, k.grid_z AS gridZ,
    k.block_x AS blockX, k.block_y AS blockY, k.block_z AS blockZ,
    k.static_shared_bytes AS staticSharedMemory, k.dynamic_shared_bytes AS dynamicSharedMemory,
    k.shared_executed_bytes AS sharedMemoryExecuted, k.local_bytes_per_thread AS localMemoryPerThread,
    k.local_bytes_total AS localMemoryTotal, k.graph_node_id AS graphNodeId
  FROM kernel k JOIN process p ON p.id = k.process_id;
CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS
  SELECT m.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    m.end - (SELECT value FROM meta WHERE key = 'origin') AS end,
    m.device_id AS deviceId, m.context_id AS contextId, m.stream_id AS streamId, m.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, m.bytes AS bytes, m.copy_kind AS copyKind, m.source_kind AS srcKind,
    m.destination_kind AS dstKind, m.source_device_id AS srcDeviceId, m.destination_device_id AS dstDeviceId,
    m.graph_node_id AS graphNodeId
  FROM memcpy m JOIN process p ON p.id = m.process_id;
CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS
  SELECT m.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    m.end - (SELECT value FROM meta WHERE key = 'origin') AS end,
    m.device_id AS deviceId, m.context_id AS contextId, m.stream_id AS streamId, m.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, m.value AS value, m.bytes AS bytes, m.memory_kind AS memKind,
    m.graph_node_id AS graphNodeId
  FROM memset m JOIN process p ON p.id = m.process_id;
CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS
  SELECT a.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    a.end - (SELECT value FROM meta WHERE key = 'origin') AS end,
    a.domain = 'driver' AS eventClass, p.pid << 24 | a.tid AS globalTid, a.correlation_id AS correlationId,
    a.full_name_id AS nameId, a.result AS returnValue, NULL AS callchainId
  FROM api_call a JOIN process p ON p.id = a.process_id WHERE NOT a.nested;
CREATE VIEW CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS
  SELECT s.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    s.end - (SELECT value FROM meta WHERE key = 'origin') AS end,
    s.context_id AS contextId, s.stream_id AS streamId, s.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, s.type AS syncType, s.event_id AS eventId
  FROM synchronization s JOIN process p ON p.id = s.process_id;
CREATE VIEW NVTX_EVENTS AS
  SELECT r.start - (SELECT value FROM meta WHERE key = 'origin') AS start,
    r.end - (SELECT value FROM meta WHERE key = 'origin') AS end,
    CASE r.style WHEN 'PushPop' THEN 59 WHEN 'StartEnd' THEN 60 ELSE 34 END AS eventType,
    r.category AS category, r.color AS color, r.name AS text, p.pid << 24 | r.tid AS globalTid, NULL AS textId
  FROM nvtx_range r JOIN process p ON p.id = r.process_id;
CREATE VIEW TARGET_INFO_GPU AS
  SELECT DISTINCT d.id AS id, d.name AS name, d.l2_bytes AS l2CacheSize, d.memory_bytes AS totalMemory,
    d.memory_bandwidth AS memoryBandwidth, d.core_clock_khz * 1000 AS clockRate, d.multiprocessors AS smCount,
    d.compute_capability_major AS computeMajor, d.compute_capability_minor AS computeMinor, d.uuid AS uuid
  FROM device d;
CREATE VIEW ThreadNames AS
  SELECT p.pid << 24 | t.tid AS globalTid, t.name AS name FROM thread t JOIN process p ON p.id = t.process_id;
)sql";

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_SQLITE_SCHEMA_H_
