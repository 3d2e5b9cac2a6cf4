// SPDX-License-Identifier: Apache-2.0
// The same data once more, with the tables, columns and numbers that scripts written for nsys expect. Tables, not
// views: such scripts ask sqlite_master for a table before they read it. Times are nanoseconds since the start of the
// trace (meta.origin). Kinds of memory count from 0 (pageable), with 7 for unknown: CUPTI's, one less.
#ifndef SONDE_CLI_EXPORTS_SQLITE_NSYS_H_
#define SONDE_CLI_EXPORTS_SQLITE_NSYS_H_

namespace sonde::exports {

inline constexpr const char* kSqliteNsysTables = R"sql(
CREATE TEMP TABLE origin AS SELECT value AS at FROM meta WHERE key = 'origin';
CREATE TEMP TABLE domain AS
  SELECT row_number() OVER (ORDER BY domain) AS id, domain AS name
  FROM (SELECT DISTINCT domain FROM nvtx_range WHERE domain <> '');
CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS AS
  SELECT u.start - (SELECT at FROM temp.origin) AS start, p.pid << 24 AS globalPid,
    u.address AS address, u.value AS originalFaultPc, u.function AS CpuInstruction, u.module AS module,
    u.module_offset AS unresolvedFaultPc, u.source_file AS sourceFile, u.source_line AS sourceLine
  FROM unified_memory u JOIN process p ON p.id = u.process_id WHERE u.kind = 3;
CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS AS
  SELECT u.start - (SELECT at FROM temp.origin) AS start,
    u.end - (SELECT at FROM temp.origin) AS end, p.pid << 24 AS globalPid, u.source_id AS deviceId,
    u.address AS address, u.value AS numberOfPageFaults, u.flags AS faultAccessType
  FROM unified_memory u JOIN process p ON p.id = u.process_id WHERE u.kind = 4;
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds SELECT id, text FROM string;
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL AS
  SELECT k.start - (SELECT at FROM temp.origin) AS start,
    k.end - (SELECT at FROM temp.origin) AS end,
    k.device_id AS deviceId, k.context_id AS contextId, k.stream_id AS streamId, k.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, k.name_id AS demangledName, k.short_name_id AS shortName,
    k.mangled_name_id AS mangledName, k.registers_per_thread AS registersPerThread,
    k.grid_x AS gridX, k.grid_y AS gridY, k.grid_z AS gridZ,
    k.block_x AS blockX, k.block_y AS blockY, k.block_z AS blockZ,
    k.static_shared_bytes AS staticSharedMemory, k.dynamic_shared_bytes AS dynamicSharedMemory,
    k.shared_executed_bytes AS sharedMemoryExecuted, k.local_bytes_per_thread AS localMemoryPerThread,
    k.local_bytes_total AS localMemoryTotal, k.graph_node_id AS graphNodeId
  FROM kernel k JOIN process p ON p.id = k.process_id;
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY AS
  SELECT m.start - (SELECT at FROM temp.origin) AS start,
    m.end - (SELECT at FROM temp.origin) AS end,
    m.device_id AS deviceId, m.context_id AS contextId, m.stream_id AS streamId, m.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, m.bytes AS bytes, m.copy_kind AS copyKind, (m.source_kind + 7) % 8 AS srcKind,
    (m.destination_kind + 7) % 8 AS dstKind, m.source_device_id AS srcDeviceId, m.destination_device_id AS dstDeviceId,
    m.graph_node_id AS graphNodeId
  FROM memcpy m JOIN process p ON p.id = m.process_id;
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET AS
  SELECT m.start - (SELECT at FROM temp.origin) AS start,
    m.end - (SELECT at FROM temp.origin) AS end,
    m.device_id AS deviceId, m.context_id AS contextId, m.stream_id AS streamId, m.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, m.value AS value, m.bytes AS bytes, (m.memory_kind + 7) % 8 AS memKind,
    m.graph_node_id AS graphNodeId
  FROM memset m JOIN process p ON p.id = m.process_id;
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME AS
  SELECT a.start - (SELECT at FROM temp.origin) AS start,
    a.end - (SELECT at FROM temp.origin) AS end,
    a.domain = 'driver' AS eventClass, p.pid << 24 | a.tid AS globalTid, a.correlation_id AS correlationId,
    a.full_name_id AS nameId, a.result AS returnValue, NULL AS callchainId
  FROM api_call a JOIN process p ON p.id = a.process_id WHERE NOT a.nested;
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS
  SELECT s.start - (SELECT at FROM temp.origin) AS start,
    s.end - (SELECT at FROM temp.origin) AS end,
    s.context_id AS contextId, s.stream_id AS streamId, s.correlation_id AS correlationId,
    p.pid << 24 AS globalPid, s.type AS syncType, s.event_id AS eventId
  FROM synchronization s JOIN process p ON p.id = s.process_id;
CREATE TABLE NVTX_EVENTS AS
  SELECT r.start - (SELECT at FROM temp.origin) AS start,
    r.end - (SELECT at FROM temp.origin) AS end,
    CASE r.style WHEN 'PushPop' THEN 59 WHEN 'StartEnd' THEN 60 ELSE 34 END AS eventType,
    r.category AS category, r.color AS color, r.name AS text, p.pid << 24 | r.tid AS globalTid, NULL AS textId,
    coalesce(d.id, 0) AS domainId
  FROM nvtx_range r JOIN process p ON p.id = r.process_id LEFT JOIN temp.domain d ON d.name = r.domain
  UNION ALL SELECT 0, NULL, 75, NULL, NULL, d.name, NULL, NULL, d.id FROM temp.domain d;
CREATE TABLE TARGET_INFO_GPU AS
  SELECT DISTINCT d.id AS id, d.name AS name, d.l2_bytes AS l2CacheSize, d.memory_bytes AS totalMemory,
    d.memory_bandwidth AS memoryBandwidth, d.core_clock_khz * 1000 AS clockRate, d.multiprocessors AS smCount,
    d.compute_capability_major AS computeMajor, d.compute_capability_minor AS computeMinor, d.uuid AS uuid
  FROM device d;
CREATE TABLE ThreadNames AS
  SELECT p.pid << 24 | t.tid AS globalTid, t.name AS name FROM thread t JOIN process p ON p.id = t.process_id;
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS AS
  SELECT m.time - (SELECT at FROM temp.origin) AS start, p.pid << 24 AS globalPid, m.device_id AS deviceId,
    m.context_id AS contextId, m.address AS address, m.bytes AS bytes, (m.memory_kind + 7) % 8 AS memKind,
    m.operation = 'Release' AS memoryOperationType, NULL AS name, m.correlation_id AS correlationId,
    m.stream_id AS streamId
  FROM memory_operation m JOIN process p ON p.id = m.process_id;
CREATE TABLE PROCESSES AS SELECT p.pid << 24 AS globalPid, p.pid AS pid, p.executable AS name FROM process p;
CREATE TABLE TARGET_INFO_CUDA_DEVICE AS
  SELECT d.id AS gpuId, d.id AS cudaId, p.pid AS pid, d.uuid AS uuid, d.multiprocessors AS numMultiprocessors
  FROM device d JOIN process p ON p.id = d.process_id;
CREATE TABLE TARGET_INFO_SESSION_START_TIME AS
  SELECT at AS utcEpochNs, strftime('%Y-%m-%d %H:%M:%S', at / 1000000000, 'unixepoch') AS utcTime,
    strftime('%Y-%m-%d %H:%M:%S', at / 1000000000, 'unixepoch', 'localtime') AS localTime FROM temp.origin;
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES
  (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'), (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
  (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'),
  (4, 'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'), (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'),
  (6, 'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'), (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'),
  (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'), (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'),
  (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer'), (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device'),
  (12, 'CUDA_MEMCPY_KIND_UVM_DTOH', 'Unified Device-to-Host'),
  (13, 'CUDA_MEMCPY_KIND_UVM_DTOD', 'Unified Device-to-Device');
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES
  (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'),
  (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'),
  (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'), (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'),
  (6, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'), (7, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown');
CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES
  (0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'), (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');
DROP TABLE temp.origin;
DROP TABLE temp.domain;
)sql";

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_SQLITE_NSYS_H_
