/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tool gets NVTX calls: it is loaded at the first call, asks for the
 * tables of function pointers, and writes its own functions into them.
 * Included by nvToolsExt.h.
 */
#ifndef SONDE_NVTX_INJECTION_H_
#define SONDE_NVTX_INJECTION_H_

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Groups of functions. */
typedef enum NvtxCallbackModule {
  NVTX_CB_MODULE_INVALID = 0,
  NVTX_CB_MODULE_CORE = 1,
  NVTX_CB_MODULE_CUDA = 2,
  NVTX_CB_MODULE_OPENCL = 3,
  NVTX_CB_MODULE_CUDART = 4,
  NVTX_CB_MODULE_CORE2 = 5,
  NVTX_CB_MODULE_SYNC = 6,
  NVTX_CB_MODULE_SIZE = 7,
  NVTX_CB_MODULE_FORCE_INT = 0x7fffffff
} NvtxCallbackModule;

/** Tables that a tool can ask for. */
typedef enum NvtxExportTableID {
  NVTX_ETID_INVALID = 0,
  NVTX_ETID_CALLBACKS = 1,
  NVTX_ETID_RESERVED0 = 2,
  NVTX_ETID_VERSIONINFO = 3,
  NVTX_ETID_SIZE = 4,
  NVTX_ETID_FORCE_INT = 0x7fffffff
} NvtxExportTableID;

typedef void (*NvtxFunctionPointer)(void);
/** Element i points to the slot of function i; element 0 is NULL. */
typedef NvtxFunctionPointer** NvtxFunctionTable;

/** Gives the table of a module and its number of elements; 0: no such module. */
typedef struct NvtxExportTableCallbacks {
  size_t struct_size;
  int (*GetModuleFunctionTable)(NvtxCallbackModule module, NvtxFunctionTable* out_table, unsigned int* out_size);
} NvtxExportTableCallbacks;

/** The version of the program's NVTX, and where a tool tells its own. */
typedef struct NvtxExportTableVersionInfo {
  size_t struct_size;
  uint32_t version;
  uint32_t reserved0;
  void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;

typedef const void* (*NvtxGetExportTableFunc_t)(uint32_t exportTableId);
typedef int (*NvtxInitializeInjectionNvtxFunc_t)(NvtxGetExportTableFunc_t exportTable);

/** A tool that is linked into the program sets this; NULL is none. */
extern __attribute__((weak)) NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;

enum { kSondeNvtxFresh = 0, kSondeNvtxStarting = 1, kSondeNvtxReady = 2, kSondeNvtxSlots = 16 };

/* One for each executable or shared object. */
typedef struct SondeNvtxState {
  int state;
  NvtxFunctionPointer slots[NVTX_CB_MODULE_SIZE][kSondeNvtxSlots];
  NvtxFunctionPointer* tables[NVTX_CB_MODULE_SIZE][kSondeNvtxSlots];
} SondeNvtxState;
__attribute__((weak, visibility("hidden"))) SondeNvtxState sondeNvtxState;

static __inline__ __attribute__((unused)) int sondeNvtxGetModuleFunctionTable(NvtxCallbackModule module,
                                                                              NvtxFunctionTable* out_table,
                                                                              unsigned int* out_size) {
  /* Functions of each module, and one for the unused index 0. */
  static const unsigned int counts[NVTX_CB_MODULE_SIZE] = {0, 16, 9, 15, 7, 16, 7};
  if (module <= NVTX_CB_MODULE_INVALID || module >= NVTX_CB_MODULE_SIZE) return 0;
  if (out_table) *out_table = sondeNvtxState.tables[module];
  if (out_size) *out_size = counts[module];
  return 1;
}

static __inline__ __attribute__((unused)) void sondeNvtxSetInjectionVersion(uint32_t version) { (void)version; }

static __inline__ __attribute__((unused)) const void* sondeNvtxGetExportTable(uint32_t id) {
  static const NvtxExportTableCallbacks callbacks = {sizeof(NvtxExportTableCallbacks), sondeNvtxGetModuleFunctionTable};
  static const NvtxExportTableVersionInfo version = {sizeof(NvtxExportTableVersionInfo), NVTX_VERSION, 0,
                                                     sondeNvtxSetInjectionVersion};
  if (id == NVTX_ETID_CALLBACKS) return &callbacks;
  if (id == NVTX_ETID_VERSIONINFO) return &version;
  return NULL;
}

/* Loads the tool, once; other threads wait until that is done. A tool that
 * annotates while it starts finds its own slots as far as they are filled. */
static __inline__ __attribute__((unused, cold)) void sondeNvtxStart(void) {
  static __thread int starting;
  int fresh = kSondeNvtxFresh;
  if (starting) return;
  if (__atomic_compare_exchange_n(&sondeNvtxState.state, &fresh, kSondeNvtxStarting, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    NvtxInitializeInjectionNvtxFunc_t initialize = NULL;
    const char* path = getenv("NVTX_INJECTION64_PATH");
    int module, i;
    starting = 1;
    for (module = 1; module < NVTX_CB_MODULE_SIZE; ++module)
      for (i = 1; i < kSondeNvtxSlots; ++i) sondeNvtxState.tables[module][i] = &sondeNvtxState.slots[module][i];
    if (path && path[0]) {
      void* library = dlopen(path, RTLD_LAZY);
      if (library) {
        void* symbol = dlsym(library, "InitializeInjectionNvtx2");
        __builtin_memcpy(&initialize, &symbol, sizeof initialize);
      }
    } else if (&InitializeInjectionNvtx2_fnptr) {
      initialize = InitializeInjectionNvtx2_fnptr;
    }
    /* A tool that refuses gets no calls. */
    if (initialize && !initialize(sondeNvtxGetExportTable)) {
      for (module = 0; module < NVTX_CB_MODULE_SIZE; ++module)
        for (i = 0; i < kSondeNvtxSlots; ++i) sondeNvtxState.slots[module][i] = NULL;
    }
    starting = 0;
    __atomic_store_n(&sondeNvtxState.state, kSondeNvtxReady, __ATOMIC_RELEASE);
  } else {
    while (__atomic_load_n(&sondeNvtxState.state, __ATOMIC_ACQUIRE) != kSondeNvtxReady) sched_yield();
  }
}

/* The tool's function, or NULL. */
static __inline__ __attribute__((unused)) NvtxFunctionPointer sondeNvtxFunction(int module, int index) {
  if (__builtin_expect(__atomic_load_n(&sondeNvtxState.state, __ATOMIC_ACQUIRE) != kSondeNvtxReady, 0))
    sondeNvtxStart();
  return sondeNvtxState.slots[module][index];
}

#ifdef __cplusplus
}
#endif

#endif /* SONDE_NVTX_INJECTION_H_ */
