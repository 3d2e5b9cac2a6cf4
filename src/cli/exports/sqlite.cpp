// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <type_traits>

#include "cli/exports/exports.h"
#include "cli/exports/sqlite_nsys.h"
#include "cli/exports/sqlite_schema.h"
#include "cli/reports/um_analysis.h"

namespace sonde::exports {
namespace {

class Database {
 public:
  ~Database() { sqlite3_close(db_); }

  bool open(const std::string& path) {
    return check(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr));
  }
  bool execute(const char* sql) { return check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
  bool check(int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return true;
    if (error_.empty()) error_ = db_ != nullptr ? sqlite3_errmsg(db_) : "out of memory";
    return false;
  }
  sqlite3* handle() const { return db_; }
  const std::string& error() const { return error_; }

 private:
  sqlite3* db_ = nullptr;
  std::string error_;
};

// One prepared INSERT; values bind in the order of the table's columns.
class Insert {
 public:
  Insert(Database& db, const char* table, int columns) : db_(db) {
    std::string sql = fmt::format("INSERT INTO {} VALUES (?", table);
    for (int i = 1; i < columns; i++) sql += ",?";
    db_.check(sqlite3_prepare_v2(db_.handle(), (sql + ")").c_str(), -1, &statement_, nullptr));
  }
  ~Insert() { sqlite3_finalize(statement_); }
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;

  template <typename... Values>
  void operator()(const Values&... values) {
    if (statement_ == nullptr) return;
    int at = 0;
    (bind(++at, values), ...);
    db_.check(sqlite3_step(statement_));
    sqlite3_reset(statement_);
  }

 private:
  template <typename V>
  void bind(int at, const V& value) {
    if constexpr (std::is_same_v<V, std::nullptr_t>) {
      sqlite3_bind_null(statement_, at);
    } else if constexpr (std::is_floating_point_v<V>) {
      sqlite3_bind_double(statement_, at, value);
    } else if constexpr (std::is_arithmetic_v<V>) {
      sqlite3_bind_int64(statement_, at, static_cast<sqlite3_int64>(value));
    } else if constexpr (std::is_convertible_v<V, std::string_view>) {
      const std::string_view text(value);
      sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    } else {  // optional
      value ? bind(at, *value) : bind(at, nullptr);
    }
  }
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
};

const char* endReason(const Process& p) {
  if (!p.end) return "killed or still running";
  switch (static_cast<spool::EndReason>(p.end->reason)) {
    case spool::EndReason::Exit: return "exit";
    case spool::EndReason::Signal: return "signal";
    case spool::EndReason::Exec: return "exec";
    case spool::EndReason::QuickExit: return "_exit";
  }
  return "unknown";
}

std::string hex(const unsigned char* bytes, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; i++) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

class Filler {
 public:
  Filler(Database& db, const Trace& trace) : db_(db), trace_(trace), string_(db, "string", 2) {}

  void run() {
    meta();
    things();
    calls();
    gpu();
    others();
    counters();
  }

 private:
  int64_t text(const std::string& s) {
    const auto [it, isNew] = ids_.try_emplace(s, static_cast<int64_t>(ids_.size()));
    if (isNew) string_(it->second, s);
    return it->second;
  }

  void meta() {
    Insert meta(db_, "meta", 2);
    meta("format", "sonde-sqlite");
    meta("version", 1);
    meta("origin", trace_.origin());
    meta("records", trace_.records());
    meta("lost_records", trace_.dropped());
    meta("damaged_bytes", trace_.damagedBytes());
    meta("unfinished_gpu_events", trace_.unfinished());
  }

  void things() {
    Insert process(db_, "process", 15), thread(db_, "thread", 3), device(db_, "device", 11), context(db_, "context", 4);
    for (size_t i = 0; i < trace_.processes.size(); i++) {
      const Process& p = trace_.processes[i];
      std::string arguments = "[";
      for (const std::string& a : p.arguments) {
        if (arguments.size() > 1) arguments += ',';
        arguments += jsonString(a);
      }
      process(i, p.pid, p.parentPid, p.executable, arguments + "]", p.workingDirectory, p.host, p.cuptiPath,
              p.cuptiVersion, p.startTime, p.end ? std::optional<uint64_t>(p.end->time) : std::nullopt, endReason(p),
              p.records, p.dropped, p.damagedBytes);
      for (const auto& [tid, name] : p.threadNames) thread(i, tid, trace_.text(name));
    }
    for (const Device& d : trace_.devices)
      device(d.process, d.id, trace_.text(d.name), hex(d.uuid, sizeof d.uuid), d.ccMajor, d.ccMinor, d.memoryBytes,
             d.memoryBandwidthKBs * 1000, d.coreClockKHz, d.multiprocessors, d.l2Bytes);
    for (const Context& c : trace_.contexts) context(c.process, c.id, c.device, c.nullStream);
  }

  void calls() {
    Insert call(db_, "api_call", 12);
    int64_t id = 0;
    for (const ApiCall& c : trace_.apiCalls) {
      const std::string& name = trace_.text(c.name);
      call(++id, c.process, c.threadId, c.start, c.end, c.runtime ? "runtime" : "driver", reports::apiName(name),
           text(name), c.cbid, c.correlation, c.returnValue, c.nested);
    }
  }

  void gpu() {
    Insert kernel(db_, "kernel", 27), memcpy(db_, "memcpy", 17), memset(db_, "memset", 13),
        graph(db_, "graph_launch", 9);
    int64_t id = 0;
    const auto optionalId = [](uint64_t v) { return v != 0 ? std::optional<uint64_t>(v) : std::nullopt; };
    for (const GpuEvent& e : trace_.gpuEvents) {
      if (!e.finished) continue;
      id++;  // one sequence for all, so that ids tell the order
      switch (e.work) {
        case GpuWork::Kernel: {
          const std::string& mangled = trace_.text(e.name);
          kernel(id, e.process, e.start, e.end, e.device, e.context, e.stream, e.correlation,
                 text(reports::kernelName(mangled, reports::NameStyle::Full)),
                 text(reports::kernelName(mangled, reports::NameStyle::Base)), text(mangled), e.grid[0], e.grid[1],
                 e.grid[2], e.block[0], e.block[1], e.block[2], e.registers, e.staticShared, e.dynamicShared,
                 e.sharedExecuted, e.localPerThread, e.localTotal, optionalId(e.graphId), optionalId(e.graphNodeId),
                 optionalId(e.queued), optionalId(e.submitted));
          break;
        }
        case GpuWork::Memcpy:
          memcpy(id, e.process, e.start, e.end, e.device, e.context, e.stream, e.correlation, e.bytes,
                 reports::copyKindName(e.copyKind), e.copyKind, e.srcKind, e.dstKind, e.srcDevice, e.dstDevice, e.async,
                 optionalId(e.graphNodeId));
          break;
        case GpuWork::Memset:
          memset(id, e.process, e.start, e.end, e.device, e.context, e.stream, e.correlation, e.bytes, e.setValue,
                 e.dstKind, e.async, optionalId(e.graphNodeId));
          break;
        case GpuWork::Graph:
          graph(id, e.process, e.start, e.end, e.device, e.context, e.stream, e.correlation, e.graphId);
          break;
      }
    }
  }

  void others() {
    Insert range(db_, "nvtx_range", 10), overhead(db_, "overhead", 8), sync(db_, "synchronization", 10),
        memory(db_, "memory_operation", 11), unified(db_, "unified_memory", 19);
    int64_t id = 0;
    for (const NvtxRange& r : trace_.ranges) {
      constexpr const char* kStyles[] = {"PushPop", "StartEnd", "Mark"};
      range(++id, r.process, r.threadId, r.start, r.closed ? std::optional<uint64_t>(r.end) : std::nullopt,
            kStyles[static_cast<int>(r.style)], trace_.text(r.name), trace_.text(r.domain), r.color, r.category);
    }
    id = 0;
    for (const Overhead& o : trace_.overheads)
      overhead(++id, o.process, o.threadId, o.start, o.end, o.kind, reports::overheadKindName(o.kind), o.correlation);
    id = 0;
    for (const Synchronization& s : trace_.synchronizations)
      sync(++id, s.process, s.start, s.end, s.type, reports::synchronizationTypeName(s.type), s.context, s.stream,
           s.eventId, s.correlation);
    id = 0;
    for (const MemoryOperation& m : trace_.memoryOperations)
      memory(++id, m.process, m.start, reports::memoryOperationName(m.operation), m.kind, m.device, m.context, m.stream,
             m.correlation, m.address, m.bytes);
    id = 0;
    for (const UnifiedMemory& u : trace_.unifiedMemory) {
      const auto at = trace_.locations.find({u.process, u.value});
      const CodeLocation* l = u.kind == reports::kUmCpuFault && at != trace_.locations.end() ? &at->second : nullptr;
      const auto name = [&](StringId CodeLocation::* field) {
        return l != nullptr && l->*field != 0 ? std::optional(reports::demangle(trace_.text(l->*field))) : std::nullopt;
      };
      unified(++id, u.process, u.start, u.end != 0 ? std::optional(u.end) : std::nullopt, u.kind,
              reports::unifiedMemoryKindName(u.kind), u.value, u.address, u.srcId, u.dstId, u.stream, u.flags,
              reports::unifiedMemoryFlagsName(u.kind, u.flags),
              u.kind == reports::kUmThrashing ? std::optional(reports::umContenders(u)) : std::nullopt,
              name(&CodeLocation::module), l != nullptr ? std::optional(l->offset) : std::nullopt,
              name(&CodeLocation::function), name(&CodeLocation::file),
              l != nullptr && l->line != 0 ? std::optional(l->line) : std::nullopt);
    }
  }

  // An overflow and what is no number are NULL.
  void counters() {
    Insert counter(db_, "counter", 5), launch(db_, "counted_launch", 9), value(db_, "counter_value", 5);
    const auto kindName = [](CounterKind kind) { return kind == CounterKind::Event ? "event" : "metric"; };
    std::set<std::pair<CounterKind, StringId>> described;
    const auto describe = [&](const std::pair<CounterKind, StringId>& key) {
      if (!described.insert(key).second) return;
      const auto info = trace_.counterInfos.find(key);
      const bool known = info != trace_.counterInfos.end();
      const auto& shown = trace_.shownCounters;
      counter(kindName(key.first), trace_.text(key.second), known ? trace_.text(info->second.description) : "",
              known ? trace_.text(info->second.domain) : "", std::find(shown.begin(), shown.end(), key) != shown.end());
    };
    int64_t id = 0;
    for (const CountedLaunch& l : trace_.launches) {
      const std::string& mangled = trace_.text(l.kernel);
      launch(++id, l.process, l.start, l.end, l.device, l.context, l.correlation,
             text(reports::kernelName(mangled, reports::NameStyle::Full)), text(mangled));
      for (const CounterValue& v : l.values) {
        describe({v.kind, v.name});
        const auto info = trace_.counterInfos.find({v.kind, v.name});
        std::optional<uint64_t> instance;
        if (v.instance != spool::kAllInstances) instance = v.instance;
        if (v.kind == CounterKind::Event || (info != trace_.counterInfos.end() && info->second.valueKind == 1))
          value(id, kindName(v.kind), trace_.text(v.name), instance,
                v.count == UINT64_MAX ? std::nullopt : std::optional<uint64_t>(v.count));
        else
          value(id, kindName(v.kind), trace_.text(v.name), instance,
                std::isfinite(v.number) ? std::optional<double>(v.number) : std::nullopt);
      }
    }
  }

  Database& db_;
  const Trace& trace_;
  Insert string_;
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace

bool writeSqlite(const Trace& trace, const Options&, const std::string& path, std::string* error) {
  Database db;
  // The file is new and is renamed only when whole: no journal is needed.
  if (db.open(path) && db.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;") &&
      db.execute("BEGIN") && db.execute(kSqliteTables)) {
    Filler(db, trace).run();
    if (db.error().empty()) db.execute(kSqliteIndexes);
    if (db.error().empty()) db.execute(kSqliteNsysTables);
    if (db.error().empty()) db.execute("COMMIT");
  }
  if (db.error().empty()) return true;
  *error = fmt::format("SQLite: {}", db.error());
  return false;
}

}  // namespace sonde::exports
