// SPDX-License-Identifier: Apache-2.0
//
// Linking PTX texts (cuLink…). What comes out is a fat binary with one PTX
// entry per text: loading it links them.
#include <cstring>
#include <fstream>
#include <iterator>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/library.h"
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
  JitLogs logs;
  std::string output;
};

CUresult findLink(CUlinkState handle, Ref<Link>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Link>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult add(Link& link, CUjitInputType type, const void* data, size_t size) {
  std::lock_guard lock(link.mutex);
  if (!link.output.empty()) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  switch (static_cast<int>(type)) {
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY: {
      LoadedImage image = readImage(data, size, link.context->device()->capability());
      if (image.error) {
        link.logs.error += image.message + "\n";
        result = image.error;
        break;
      }
      for (auto& text : image.texts) {
        std::shared_ptr<exec::Program> parsed;
        // Checked alone, so that a mistake is found where it is; a symbol that
        // another text gives is no mistake.
        JitLogs logs;
        const CUresult e = makeProgram({text}, link.context->device()->model, logs, parsed);
        if (e && e != CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) {
          link.logs.error += logs.error;
          result = e;
        }
        link.logs.info += logs.info;
        link.texts.push_back(std::move(text));
      }
      break;
    }
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
    case CU_JIT_INPUT_NVVM:
      link.logs.error += "only PTX can be linked here; machine code and NVVM cannot run on this device\n";
      result = CUDA_ERROR_NO_BINARY_FOR_GPU;
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
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
  return add(*link, type, data, size);
}

DRIVER_API(cuLinkAddFile_v2)
(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions, CUjit_option* options,
 void** optionValues) {
  Ref<Link> link;
  if (const CUresult e = findLink(state, link)) return e;
  JitOptions jit;
  if (const CUresult e = jit.parse(numOptions, options, optionValues)) return e;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty()) return CUDA_ERROR_INVALID_IMAGE;
  return add(*link, type, bytes.data(), bytes.size());
}

DRIVER_API(cuLinkComplete)(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  Ref<Link> link;
  if (const CUresult e = findLink(state, link)) return e;
  if (!cubinOut) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(link->mutex);
  if (link->texts.empty()) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<exec::Program> program;
  const CUresult result = makeProgram(link->texts, link->context->device()->model, link->logs, program);
  link->options.deliver(link->logs);
  if (result) return result;
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
