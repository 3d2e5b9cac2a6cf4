// SPDX-License-Identifier: Apache-2.0
// The tables of the SQLite export. Times are nanoseconds since the epoch.
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

inline constexpr const char* kSqliteIndexes = R"sql(
CREATE INDEX api_call_correlation ON api_call(process_id, correlation_id);
CREATE INDEX kernel_correlation ON kernel(process_id, correlation_id);
CREATE INDEX memcpy_correlation ON memcpy(process_id, correlation_id);
CREATE INDEX counter_value_name ON counter_value(name, launch_id);
CREATE INDEX memset_correlation ON memset(process_id, correlation_id);
)sql";

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_SQLITE_SCHEMA_H_
