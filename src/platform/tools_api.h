/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools interface: what the profiling core needs of a GPU platform.
 *
 * The software driver (libcuda.so.1) exports one implementation through
 * sondeToolsGetPlatform; the NVIDIA side implements the same table inside
 * libcupti with hooks. The core knows only this table, never the platform
 * behind it. Plain C, so that the two shared libraries need not agree on a C++
 * runtime.
 *
 * Rules that hold for every function here
 *  - All times are nanoseconds of the clock that `now` reads (since the epoch).
 *  - The platform holds none of its own locks while it calls the listener.
 *  - Structures passed to the listener live until the call returns; the
 *    strings in them live as long as the object that they name (function,
 *    module), so that a listener may keep them until the matching
 *    *_DESTROY/UNLOAD event.
 *  - Every structure begins with its size; a newer side may append fields.
 */
#ifndef SONDE_PLATFORM_TOOLS_API_H_
#define SONDE_PLATFORM_TOOLS_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_TOOLS_ABI_VERSION 1u

/* Handles are the driver's own (CUcontext, CUstream, CUfunction, CUmodule …). */
typedef void* SondeHandle;

/* The values are those of CUpti_CallbackDomain. */
typedef enum SondeDomain {
  SONDE_DOMAIN_DRIVER = 1,
  SONDE_DOMAIN_RUNTIME = 2,
} SondeDomain;

/* ------------------------------------------------------------- API calls -- */

/* One API call that somebody listens to. It lives on the stack of the calling
 * thread from apiEnter to apiExit and is the same object in both. */
typedef struct SondeApiCall {
  uint32_t size;
  uint32_t domain;          /* SondeDomain */
  uint32_t cbid;            /* CUpti_driver_api_trace_cbid / _runtime_ */
  uint32_t correlationId;   /* of the outermost call; never 0 */
  uint32_t nested;          /* 1: a driver call made by a runtime call; or a runtime call begun unseen (no params) */
  uint32_t contextUid;      /* 0: no context */
  SondeHandle context;      /* current context of the thread, or NULL */
  const char* functionName; /* "cuLaunchKernel", without version suffix rules: as the name tables have it */
  const char* symbolName;   /* mangled kernel name on launches, else NULL */
  const void* params;       /* the generated parameter structure of the cbid, or NULL when it has none */
  void* returnValue;        /* CUresult* / cudaError_t*, valid at exit; a listener may overwrite it there */
  /* For the listener alone: kept from enter to exit, zero at enter. */
  uint64_t enterTime;
  void* listenerData;
  uint64_t listenerWords[8];
} SondeApiCall;

/* -------------------------------------------------------------- resources -- */

typedef enum SondeResourceEvent {
  SONDE_RESOURCE_CONTEXT_CREATED = 1,
  SONDE_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
  SONDE_RESOURCE_STREAM_CREATED = 3,
  SONDE_RESOURCE_STREAM_DESTROY_STARTING = 4,
  SONDE_RESOURCE_MODULE_LOADED = 5,
  SONDE_RESOURCE_MODULE_UNLOAD_STARTING = 6,
  SONDE_RESOURCE_FUNCTION_LOADED = 7, /* once per kernel, at its first use */
  SONDE_RESOURCE_INIT_FINISHED = 8,
  SONDE_RESOURCE_GRAPH_CREATED = 9,
  SONDE_RESOURCE_GRAPH_DESTROY_STARTING = 10,
  SONDE_RESOURCE_GRAPH_CLONED = 11,
  SONDE_RESOURCE_GRAPH_NODE_CREATED = 12,
  SONDE_RESOURCE_GRAPH_NODE_DESTROY_STARTING = 13,
  SONDE_RESOURCE_GRAPH_NODE_CLONED = 14,
  SONDE_RESOURCE_GRAPH_EXEC_CREATED = 15,
  SONDE_RESOURCE_GRAPH_EXEC_DESTROY_STARTING = 16,
  SONDE_RESOURCE_DEVICE_MEMORY = 17, /* an allocation or a release */
} SondeResourceEvent;

typedef struct SondeResource {
  uint32_t size;
  uint32_t event; /* SondeResourceEvent */
  SondeHandle context;
  uint32_t contextUid;
  uint32_t deviceId;
  SondeHandle handle; /* stream, module, function, graph, node … */
  uint32_t id;        /* CUPTI id of it: stream id, module id, function id, graph id */
  uint32_t flags;     /* stream: bit 0 null stream, bit 1 non-blocking; */
  int32_t priority;   /* stream */
  const void* image;  /* module: the PTX text or ELF it was made from */
  size_t imageSize;
  const char* name;       /* function: mangled name */
  uint32_t moduleId;      /* function: the module it is in */
  uint32_t functionIndex; /* function: index in the module's symbol table */
  /* Graph nodes. */
  SondeHandle parent; /* graph of a node; original of a clone; graph of an exec */
  uint64_t nodeId;
  uint64_t originalNodeId;
  uint32_t nodeType; /* CUgraphNodeType */
  /* SONDE_RESOURCE_DEVICE_MEMORY */
  uint64_t address;
  uint64_t bytes;
  uint32_t memoryKind; /* SondeMemoryKind */
  uint32_t memoryOp;   /* 1 allocation, 2 release; pools: 3 created, 4 destroyed, 5 trimmed */
  uint64_t time;
  uint32_t correlationId;
  uint32_t streamId;
  uint32_t isAsync;
  SondeHandle pool;
  uint64_t poolReleaseThreshold, poolReservedBytes, poolUsedBytes;
  SondeHandle originalNode; /* clone of a graph node: what it was copied from */
  /* Contexts on part of a device: the one that they are of (0: none), and their multiprocessors. */
  uint32_t parentContextUid;
  uint32_t multiprocessors;
  /* DEVICE_MEMORY: where the application's call will return to; 0: not known.
   * `name` is that of a module's variable, else NULL. */
  uint64_t pc;
} SondeResource;

typedef enum SondeSyncEvent {
  SONDE_SYNC_EVENT_SYNCHRONIZE = 1,
  SONDE_SYNC_STREAM_WAIT_EVENT = 2,
  SONDE_SYNC_STREAM_SYNCHRONIZE = 3,
  SONDE_SYNC_CONTEXT_SYNCHRONIZE = 4,
} SondeSyncEvent;

/* A finished host-side synchronisation. */
typedef struct SondeSync {
  uint32_t size;
  uint32_t kind; /* SondeSyncEvent, = CUpti_ActivitySynchronizationType */
  SondeHandle context;
  uint32_t contextUid;
  SondeHandle stream;
  uint32_t streamId; /* 0xffffffff when none is meant */
  uint32_t eventId;
  uint32_t correlationId;
  uint64_t start, end;
  uint64_t eventSyncId;
  int32_t returnValue;
} SondeSync;

/* ------------------------------------------------------- completed work -- */

typedef enum SondeWorkKind {
  SONDE_WORK_KERNEL = 1,
  SONDE_WORK_MEMCPY = 2,
  SONDE_WORK_MEMCPY_PEER = 3,
  SONDE_WORK_MEMSET = 4,
  SONDE_WORK_EVENT_RECORD = 5,
  SONDE_WORK_GRAPH = 6, /* a whole graph launch */
  SONDE_WORK_HOST_FUNCTION = 7,
} SondeWorkKind;

/* Values of CUpti_ActivityMemoryKind. */
typedef enum SondeMemoryKind {
  SONDE_MEMORY_UNKNOWN = 0,
  SONDE_MEMORY_PAGEABLE = 1,
  SONDE_MEMORY_PINNED = 2,
  SONDE_MEMORY_DEVICE = 3,
  SONDE_MEMORY_ARRAY = 4,
  SONDE_MEMORY_MANAGED = 5,
  SONDE_MEMORY_DEVICE_STATIC = 6,
  SONDE_MEMORY_MANAGED_STATIC = 7,
} SondeMemoryKind;

/* What one instruction of a kernel did, summed over the grid. Only those that
 * were executed. */
typedef struct SondeInstructionCount {
  uint32_t functionId; /* of the function that it stands in */
  uint32_t pcOffset;   /* its place there */
  const char* file;    /* NULL: not known */
  uint32_t line;
  uint32_t instructionClass; /* CUpti_ActivityInstructionClass */
  uint32_t isBranch;
  uint32_t access; /* 1 reads, 2 writes, 3 atomic with a result, 4 without, 5 copies from global to shared memory; 0: no
                      access */
  uint32_t accessBytes; /* of one thread */
  uint32_t cached;      /* a load that L1 may serve */
  uint64_t executed, threads, notPredicatedOff, diverged;
  /* Requests that hit the space and their threads; transactions (32-byte
   * sectors, passes over the banks), and the fewest that would do. */
  uint64_t globalExecuted, globalThreads, globalTransactions, globalIdeal;
  uint64_t sharedExecuted, sharedThreads, sharedTransactions, sharedIdeal;
} SondeInstructionCount;

typedef struct SondeWork {
  uint32_t size;
  uint32_t kind;          /* SondeWorkKind */
  uint32_t correlationId; /* of the API call that enqueued it */
  uint32_t deviceId;
  uint32_t contextUid;
  uint32_t streamId;
  SondeHandle context;
  uint64_t queued, submitted, start, end;
  uint32_t status; /* 0: ran; otherwise the CUresult it failed with */
  uint32_t graphId;
  uint64_t graphNodeId;
  uint32_t channelId;   /* hardware queue, or the worker that stands for one */
  uint32_t channelType; /* CUpti_ChannelType */
  /* Kernel. */
  const char* name; /* mangled */
  uint32_t moduleId, functionId;
  uint64_t gridId;
  uint32_t grid[3], block[3], cluster[3];
  uint32_t registersPerThread;
  uint32_t staticSharedMemory, dynamicSharedMemory, sharedMemoryExecuted;
  uint32_t localMemoryPerThread;
  uint64_t localMemoryTotal;
  uint32_t cacheConfigRequested, cacheConfigExecuted;
  uint32_t sharedMemoryConfig, sharedMemoryCarveout, sharedMemoryCarveoutRequested;
  uint32_t launchType; /* CUpti_ActivityLaunchType: 0 regular, 1 cooperative … */
  int32_t priority;
  uint32_t partitionedCacheRequested, partitionedCacheExecuted;
  uint64_t parentGridId; /* dynamic parallelism; 0: launched by the host */
  uint32_t parentBlock[3];
  /* Copies and sets. */
  uint32_t copyKind; /* CUpti_ActivityMemcpyKind */
  uint32_t srcMemoryKind, dstMemoryKind;
  uint64_t bytes;
  uint32_t isAsync;
  uint32_t srcDeviceId, dstDeviceId, srcContextUid, dstContextUid;
  uint64_t copyCount;
  uint32_t setValue;
  /* Event record. */
  uint32_t eventId;
  uint64_t eventSyncId;
  uint64_t extraId; /* GRAPH: exec id */
  /* For the listener alone: written in workEnqueued, handed back as it was in
   * workCompleted. 0 at workEnqueued and for work enqueued with no listener. */
  uint64_t listenerWord;
  /* As listenerWord. */
  uint64_t listenerWord2;
  /* Kernels: set by the listener in workEnqueued. The kernel then runs while no
   * other one of its context does, and is reported with its instructions, in
   * the order of functions and places; they live until the call returns. */
  uint32_t countInstructions;
  uint32_t instructionSize; /* of one element */
  const SondeInstructionCount* instructions;
  uint64_t instructionCount;
  uint64_t completed; /* a kernel and all that it launched; 0: at its end */
  /* As listenerWord. */
  uint64_t listenerWord3;
  /* Kernels: the CUaccessPolicyWindow of the launch, NULL: none. It lives until the call returns. */
  const void* accessPolicy;
  /* Kernels: the CUclusterSchedulingPolicy that holds, 0: none. With clusters: the most blocks that one of this launch
   * could have, and those of its size that are resident at once. */
  uint32_t clusterSchedulingPolicy, maxPotentialClusterSize, maxActiveClusters;
  uint32_t sharedMemoryOptin; /* 1: the kernel may have more shared memory a block than every kernel may */
} SondeWork;

/* A block that waits for kernels it launched gave up its place, or has it again. */
typedef struct SondePreemption {
  uint32_t size;
  uint32_t restored; /* 0: saved */
  SondeHandle context;
  uint64_t time;
  uint64_t gridId;
  uint32_t block[3];
} SondePreemption;

typedef enum SondeOverheadKind {
  SONDE_OVERHEAD_COMPILER = 1,               /* PTX to host code */
  SONDE_OVERHEAD_LAZY_LOADING = 2,           /* of a function, at its first use; encloses its compilation */
  SONDE_OVERHEAD_INSTRUMENTATION = 3,        /* making the variant of a kernel that counts */
  SONDE_OVERHEAD_RUNTIME_MODULE_LOADING = 4, /* a module that a runtime call brought in */
  SONDE_OVERHEAD_QUEUE_FULL = 5,             /* a launch waited for room in its queue */
} SondeOverheadKind;

typedef struct SondeOverhead {
  uint32_t size;
  uint32_t kind;
  uint64_t start, end;
  uint32_t correlationId;
  uint32_t contextUid;
  uint32_t deviceId;
  const char* what;                /* function or module, for the message */
  uint64_t cacheHit;               /* 1: the code came from the disk cache */
  uint64_t bytes;                  /* of the PTX */
  const char* cacheFile;           /* where the code is in the disk cache; NULL: nowhere */
  uint64_t cacheBytes;             /* of that file */
  uint32_t channelId, channelType; /* QUEUE_FULL: as in SondeWork */
} SondeOverhead;

/* --------------------------------------------------------- unified memory -- */

typedef struct SondeUnifiedMemory {
  uint32_t size;
  uint32_t kind; /* CUpti_ActivityUnifiedMemoryCounterKind */
  uint64_t value, start, end, address;
  uint32_t srcId, dstId, streamId, flags;
  uint64_t processors[5];
} SondeUnifiedMemory;

/* ----------------------------------------------------------- the listener -- */

/* What libcupti implements. Any entry may be NULL. `self` comes back as given. */
typedef struct SondeListener {
  uint32_t size;
  void* self;
  /* On the calling thread. Only for cbids whose enabled byte is not 0. */
  void (*apiEnter)(void* self, SondeApiCall* call);
  void (*apiExit)(void* self, SondeApiCall* call);
  /* On the thread that causes the event. */
  void (*resource)(void* self, const SondeResource* event);
  void (*synchronized)(void* self, const SondeSync* event);
  void (*overhead)(void* self, const SondeOverhead* event);
  /* On a thread of the platform, in completion order within a stream. */
  void (*workCompleted)(void* self, const SondeWork* work);
  /* Before work is enqueued, on the calling thread: the listener decides here
   * whether it wants the record and notes that in listenerWord. */
  void (*workEnqueued)(void* self, SondeWork* work);
  void (*unifiedMemory)(void* self, const SondeUnifiedMemory* event);
  /* A sticky error made a context unusable. */
  void (*contextFailed)(void* self, SondeHandle context, uint32_t contextUid, int32_t error, const char* message);
  /* On the thread that runs the block. */
  void (*preempted)(void* self, const SondePreemption* event);
} SondeListener;

/* ---------------------------------------------------------- raw counters -- */

/* Counting is configured per context as a set of raw counters; the index is
 * SondeCounter (softgpu/exec/counters.h on the software GPU). Values are read
 * per domain instance (an SM, an L2 slice, a memory partition). */
typedef enum SondeCounterMode {
  SONDE_COUNTER_MODE_OFF = 0,
  SONDE_COUNTER_MODE_KERNEL = 1, /* reset at each kernel start */
  SONDE_COUNTER_MODE_CONTINUOUS = 2,
} SondeCounterMode;

typedef struct SondeClockInfo {
  uint32_t size;
  uint32_t smClockMHz, memoryClockMHz, baseClockMHz, boostClockMHz;
  uint32_t pcieLinkGen, pcieLinkWidth;
  uint32_t throttleReasons; /* CUpti_EnvironmentClocksThrottleReason */
  uint32_t temperatureC, fanSpeedPercent /* ~0: no fan */;
  uint32_t powerMilliwatts, powerLimitMilliwatts;
} SondeClockInfo;

/* ----------------------------------------------------------- the platform -- */

/* Ids that libcupti hands to its clients are given by the platform, so that
 * they are stable without any listener. */
typedef struct SondePlatform {
  uint32_t size;
  uint32_t abiVersion;
  const char* name; /* "softgpu", "nvidia" */

  uint64_t (*now)(void);

  /* One listener at a time. 0: attached; otherwise a CUresult. Detach waits
   * until no listener function runs any more (except one that detaches). */
  int32_t (*attach)(const SondeListener* listener);
  void (*detach)(void);

  /* One byte per cbid, written by the listener at any time: 0 costs the API
   * call one load and one branch. *count receives the number of bytes. */
  volatile uint8_t* (*enabledCallbacks)(uint32_t domain, uint32_t* count);
  /* Switches for everything that is not an API call, one bit each of
   * SondeInterest; 0 means that the platform builds no such event. For work it
   * counts when the work is enqueued: what was wanted then is reported, also
   * when the bit is clear by the time it is done. */
  void (*setInterest)(uint64_t interest);

  /* Objects. Each returns 0 or a CUresult and leaves the output alone on
   * failure. */
  int32_t (*contextId)(SondeHandle context, uint32_t* id);
  int32_t (*contextDevice)(SondeHandle context, uint32_t* deviceId);
  int32_t (*streamId)(SondeHandle context, SondeHandle stream, int perThread, uint32_t* id);
  int32_t (*graphId)(SondeHandle graph, uint32_t* id);
  int32_t (*graphExecId)(SondeHandle exec, uint32_t* id);
  int32_t (*graphNodeId)(SondeHandle node, uint64_t* id);
  int32_t (*currentContext)(SondeHandle* context);
  uint32_t (*correlationId)(void); /* of the innermost API call of this thread; 0: none */
  int32_t (*synchronizeContext)(SondeHandle context);
  int32_t (*synchronizeAll)(void);
  /* Calls `visit` for each live object, so that a listener that attaches late
   * learns of what exists: contexts, their streams, modules. */
  void (*enumerate)(void (*visit)(void* self, const SondeResource* resource), void* self);

  int32_t (*deviceCount)(uint32_t* count);
  /* A CUdevice_attribute. */
  int32_t (*deviceAttribute)(uint32_t device, int32_t attribute, int64_t* value);
  /* A fact of the device model that no driver attribute has, by name
   * ("l2.slices", "global_memory_bandwidth_kBps", "instruction_per_cycle",
   * "memory_bytes" …). deviceString gives "name", "uuid" (32 hex digits) ….
   * deviceString also gives "counters": the JSON text of the event catalogue. */
  int32_t (*deviceFact)(uint32_t device, const char* name, double* value);
  int32_t (*deviceString)(uint32_t device, const char* name, const char** value);

  /* Counters. May be NULL: the platform has none.
   *
   * counterConfigure says which raw counters a context counts from the next
   * kernel on (none: counting is off); it replaces the earlier set. A counter
   * that stays configured keeps its total. `mode` KERNEL makes kernels of the
   * context run one at a time. Totals only grow: the listener keeps base lines
   * and subtracts.
   *
   * counterRead gives a consistent snapshot, also while a kernel runs
   * (CONTINUOUS): for counter i and instance k, totals[i * *instances + k], and
   * the same at the start of the kernel that started last. `*instances` in:
   * room per counter; out: how many the counters have (SMs, or slices of L2 or
   * DRAM; all counters of one call must belong to one kind of unit).
   * `*kernels` counts the kernels started in the context since it was made.
   * NOT_FOUND: a counter that is not configured. */
  int32_t (*counterConfigure)(SondeHandle context, uint32_t mode, const uint32_t* counters, uint32_t count);
  int32_t (*counterRead)(SondeHandle context, const uint32_t* counters, uint32_t count, uint64_t* totals,
                         uint64_t* totalsAtKernelStart, uint32_t* instances, uint64_t* kernels);
  /* How many instances a raw counter has on a device, and its name. */
  int32_t (*counterInstances)(uint32_t device, uint32_t counter, uint32_t* instances);
  const char* (*counterName)(uint32_t counter); /* NULL: past the last */

  int32_t (*clockInfo)(uint32_t device, SondeClockInfo* info);
  /* `mode`: 1 base, 2 boost. ALREADY_ACQUIRED: there is a lock, whoever made
   * it; it stays. Unlock frees what this process locked, and is 0 where that is
   * nothing (or was freed by another hand since). */
  int32_t (*clockLock)(uint32_t device, uint32_t mode);
  int32_t (*clockUnlock)(uint32_t device);
  /* A CUpti_ClockControl_Status; `ours`: the lock is of this process. */
  int32_t (*clockStatus)(uint32_t device, uint32_t* status, int* ours);
  /* `pid`: who asked for that state of auto boost; 0: unknown or nobody. */
  int32_t (*autoBoost)(uint32_t device, uint32_t* enabled, uint32_t* pid);

  /* Counters of unified memory to report for a device: bit k for
   * CUpti_ActivityUnifiedMemoryCounterKind k; replaces the earlier set. From
   * the first one on, managed pages have a residence. NOT_SUPPORTED: the device
   * has no unified memory, or the user has switched its residence off. */
  int32_t (*unifiedMemoryConfigure)(uint32_t device, uint32_t kindMask);
  /* Not used: SondeWork::countInstructions asks for each kernel. */
  int32_t (*recordSourceLevel)(SondeHandle context, uint32_t what);

  /* Reports, on the calling thread, work that has finished by now and is not
   * reported yet, and what has happened to unified memory. NULL: the platform
   * holds nothing back. */
  void (*collect)(void);
  /* 1: the platform changes the process while a listener is attached; the
   * listener detaches when it has nobody left to report to. */
  uint32_t detachWhenUnused;
  /* Visits work that is enqueued and not reported, with its listenerWord. A
   * platform that has it spares the listener a list of its own; NULL: it has
   * not. The listener calls nothing of the platform from `visit`. */
  void (*pendingWork)(void (*visit)(void* self, const SondeWork* work), void* self);

  /* Frees the lock of a device's clocks whoever made it. May be NULL. */
  int32_t (*clockReset)(uint32_t device);
  /* Why unifiedMemoryConfigure failed last, for people. May be NULL. */
  const char* (*unifiedMemoryFailure)(void);
  /* 1: SondeWork::countInstructions is heeded. */
  uint32_t countsInstructions;
} SondePlatform;

typedef enum SondeInterest {
  SONDE_INTEREST_RESOURCE = 1u << 0,
  SONDE_INTEREST_SYNC = 1u << 1,
  SONDE_INTEREST_KERNEL = 1u << 2,
  SONDE_INTEREST_MEMCPY = 1u << 3,
  SONDE_INTEREST_MEMSET = 1u << 4,
  SONDE_INTEREST_OVERHEAD = 1u << 5,
  SONDE_INTEREST_EVENT_RECORD = 1u << 6,
  SONDE_INTEREST_GRAPH = 1u << 7,
  SONDE_INTEREST_MEMORY = 1u << 8,
  SONDE_INTEREST_UNIFIED_MEMORY = 1u << 9,
  SONDE_INTEREST_LATENCY = 1u << 10, /* fill `queued` and `submitted` */
  SONDE_INTEREST_HOST_FUNCTION = 1u << 11,
  SONDE_INTEREST_PREEMPTION = 1u << 12,
} SondeInterest;

/* Exported by the software driver. NULL: no such ABI version. */
typedef const SondePlatform* (*SondeToolsGetPlatformFn)(uint32_t abiVersion);
#define SONDE_TOOLS_GET_PLATFORM_SYMBOL "sondeToolsGetPlatform"

/* ------------------------------------------- for libcudart, from libcuda -- */

/* How a runtime reports its calls. Optional: a runtime on another driver does
 * without. Exported by the software driver as sondeToolsRuntime. */
typedef struct SondeRuntimeHooks {
  uint32_t size;
  const volatile uint8_t* enabled; /* one byte per runtime cbid */
  uint32_t enabledCount;
  void (*enter)(SondeApiCall* call); /* fills correlation id and context */
  void (*exit)(SondeApiCall* call);
  /* For calls nobody listens to: correlation still has to be one id from the
   * outermost call on; cheap (thread-local). */
  void (*begin)(void);
  void (*end)(void);
} SondeRuntimeHooks;
typedef const SondeRuntimeHooks* (*SondeToolsRuntimeFn)(uint32_t abiVersion);
#define SONDE_TOOLS_RUNTIME_SYMBOL "sondeToolsRuntime"

#ifdef __cplusplus
}
#endif

#endif /* SONDE_PLATFORM_TOOLS_API_H_ */
