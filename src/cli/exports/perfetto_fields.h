// SPDX-License-Identifier: Apache-2.0
// Field numbers of the Perfetto trace format, as far as the export uses them.
#ifndef SONDE_CLI_EXPORTS_PERFETTO_FIELDS_H_
#define SONDE_CLI_EXPORTS_PERFETTO_FIELDS_H_

#include <cstdint>

namespace sonde::exports::perfetto {

using Field = uint32_t;

namespace trace {
inline constexpr Field packet = 1;
}

namespace packet {
inline constexpr Field clockSnapshot = 6, timestamp = 8, sequenceId = 10, trackEvent = 11, internedData = 12,
                       sequenceFlags = 13, gpuCounterEvent = 52, gpuRenderStageEvent = 53, timestampClockId = 58,
                       trackDescriptor = 60, gpuInfo = 128;
inline constexpr uint64_t kIncrementalStateCleared = 1, kNeedsIncrementalState = 2;
}  // namespace packet

namespace clock {
inline constexpr Field clocks = 1, primaryTraceClock = 2;  // ClockSnapshot
inline constexpr Field clockId = 1, timestamp = 2;         // Clock
inline constexpr uint64_t kRealtime = 1;
}  // namespace clock

namespace track {
inline constexpr Field uuid = 1, name = 2, process = 3, thread = 4, parentUuid = 5, counter = 8, childOrdering = 11,
                       siblingOrderRank = 12;
inline constexpr Field processPid = 1, processCmdline = 2, processName = 6;
inline constexpr Field counterUnit = 3;
inline constexpr uint64_t kUnitBytes = 3;
inline constexpr Field threadPid = 1, threadTid = 2, threadName = 5;
inline constexpr uint64_t kOrderExplicit = 3;
}  // namespace track

namespace event {
inline constexpr Field debugAnnotations = 4, type = 9, nameIid = 10, trackUuid = 11, categories = 22, name = 23,
                       counterValue = 30, gpuCorrelation = 3000, gpuApi = 3001;
inline constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
inline constexpr Field correlationSubmissions = 1;
inline constexpr uint64_t kApiCuda = 4;
}  // namespace event

namespace annotation {
inline constexpr Field uintValue = 3, stringValue = 6, name = 10;
}

namespace interned {
inline constexpr Field eventNames = 2, graphicsContexts = 23, gpuSpecifications = 24, gpuCounterDescriptors = 47,
                       computeKernels = 1000, computeArgNames = 1001;
inline constexpr Field iid = 1, name = 2;  // of most entries
inline constexpr Field contextPid = 2, contextApi = 3;
inline constexpr Field specificationDescription = 3, specificationCategory = 4;
inline constexpr uint64_t kCategoryOther = 0, kCategoryCompute = 2;
inline constexpr Field kernelDemangledName = 3, kernelArch = 4;
inline constexpr Field counterDescriptor = 2, counterGpuId = 3;
}  // namespace interned

namespace stage {
inline constexpr Field eventId = 1, duration = 2, context = 5, gpuId = 11, hwQueueIid = 13, stageIid = 14,
                       kernelIid = 19, nameIid = 20, launch = 21;
inline constexpr Field gridSize = 1, workgroupSize = 2, args = 3;  // launch
inline constexpr Field x = 1, y = 2, z = 3;
inline constexpr Field argNameIid = 1, argUint = 4, argDouble = 5, argString = 6;
}  // namespace stage

namespace counter {
inline constexpr Field counters = 2, gpuId = 3, descriptorIid = 4;    // GpuCounterEvent
inline constexpr Field counterId = 1, intValue = 2, doubleValue = 3;  // GpuCounter
inline constexpr Field specs = 1;                                     // GpuCounterDescriptor
inline constexpr Field specId = 1, specName = 2, specDescription = 3, specNumeratorUnits = 7, specDenominatorUnits = 8,
                       specSelectByDefault = 9, specGroups = 10, specDirection = 11;
inline constexpr uint64_t kUnitByte = 7, kUnitSecond = 22, kGroupMemory = 5, kGroupCompute = 6, kForwards = 2;
}  // namespace counter

namespace gpu {
inline constexpr Field gpus = 1;
inline constexpr Field name = 1, vendor = 2, model = 3, architecture = 4, uuid = 5, extraInfo = 6;
inline constexpr Field key = 1, value = 2;
}  // namespace gpu

}  // namespace sonde::exports::perfetto

#endif  // SONDE_CLI_EXPORTS_PERFETTO_FIELDS_H_
