// SPDX-License-Identifier: Apache-2.0
//
// Linking PTX texts (cuLink…). What comes out is a fat binary with one PTX
// entry per text: loading it links them.
#include <string>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"

namespace sonde::softgpu::driver {
namespace {

class Link final : public Object {
 public:
  static constexpr Type kType = Type::link;
  Link(Context* context, const JitOptions& options) : Object(kType), context(context), options(options) {}
  Ref<Context> context;
  JitOptions options;
  std::mutex mutex;
  std::vector<std::string> texts;
  JitLogs logs;  // its names are those of the texts
  std::string output;
};

CUresult findLink(CUlinkState handle, Ref<Link>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Link>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// `found`: has the input's name, and takes what is wrong with it.
CUresult add(Link& link, CUjitInputType type, const void* data, size_t size, JitLogs found) {
  std::lock_guard lock(link.mutex);
  if (!link.output.empty()) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  switch (static_cast<int>(type)) {
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY: {
      LoadedImage image = readImage(data, size, link.context->device()->capability());
      if (image.error) {
        found.fail(image.message);
        result = image.error;
        break;
      }
      for (auto& text : image.texts) {
        // Checked alone, so that a mistake is found where it is; a symbol that
        // another text gives is no mistake.
        std::shared_ptr<exec::Program> parsed;
        JitLogs logs;
        logs.names = found.names;
        const CUresult e = makeProgram({text}, link.context->device()->model, logs, parsed);
        found.info += logs.info;
        if (e && e != CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) {
          result = e;
          if (found.error.empty()) found.quoted = logs.quoted;
          found.error += logs.error;
          continue;
        }
        link.texts.push_back(std::move(text));
        link.logs.names.push_back(found.names.empty() ? "" : found.names.front());
      }
      break;
    }
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
    case CU_JIT_INPUT_NVVM:
      found.fail("only PTX can be linked here; machine code and NVVM cannot run on this device");
      result = CUDA_ERROR_NO_BINARY_FOR_GPU;
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  if (result) say("link input refused: " + found.shown());
  link.logs.info += found.info;
  link.logs.error += found.error;
  link.options.deliver(link.logs);
  return result;
}

}  // namespace

DRIVER_API(cuLinkCreate_v2)
(unsigned int numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!stateOut) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit;
  if (const CUresult e = jit.parse(numOptions, options, optionValues)) return e;
  auto link = make<Link>(context.get(), jit);
  if (!HandleTable::publish(link.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *stateOut = static_cast<CUlinkState>(link->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuLinkAddData_v2)
(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name, unsigned int numOptions,
 CUjit_option* options, void** optionValues) {
  Ref<Link> link;
  if (const CUresult e = findLink(state, link)) return e;
  JitOptions jit;
  if (const CUresult e = jit.parse(numOptions, options, optionValues)) return e;
  if (!data || size == 0) return CUDA_ERROR_INVALID_VALUE;
  JitLogs logs;
  if (name && *name) logs.names = {name};
  return add(*link, type, data, size, std::move(logs));
}

DRIVER_API(cuLinkAddFile_v2)
(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions, CUjit_option* options,
 void** optionValues) {
  Ref<Link> link;
  if (const CUresult e = findLink(state, link)) return e;
  JitOptions jit;
  if (const CUresult e = jit.parse(numOptions, options, optionValues)) return e;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  std::string bytes;
  JitLogs logs;
  if (const CUresult e = readImageFile(path, bytes, logs)) {
    say("link input refused: " + logs.shown());
    std::lock_guard lock(link->mutex);
    link->logs.error += logs.error;
    link->options.deliver(link->logs);
    return e;
  }
  return add(*link, type, bytes.data(), bytes.size(), std::move(logs));
}

DRIVER_API(cuLinkComplete)(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  Ref<Link> link;
  if (const CUresult e = findLink(state, link)) return e;
  if (!cubinOut) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(link->mutex);
  if (link->texts.empty()) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<exec::Program> program;
  JitLogs logs;
  logs.names = link->logs.names;
  const CUresult result = makeProgram(link->texts, link->context->device()->model, logs, program);
  link->logs.info += logs.info;
  link->logs.error += logs.error;
  link->options.deliver(link->logs);
  if (result) {
    say("link refused: " + logs.shown());
    return result;
  }
  link->output = packTexts(link->texts, link->context->device()->capability());
  *cubinOut = link->output.data();
  if (sizeOut) *sizeOut = link->output.size();
  return CUDA_SUCCESS;
}

DRIVER_API(cuLinkDestroy)(CUlinkState state) {
  Ref<Link> link;
  if (const CUresult e = findLink(state, link)) return e;
  return HandleTable::retire(link.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace sonde::softgpu::driver
