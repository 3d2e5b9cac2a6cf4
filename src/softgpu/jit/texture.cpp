// SPDX-License-Identifier: Apache-2.0
//
// Texture and surface instructions: coordinates and data go through memory to
// a helper, and back.
#include "softgpu/exec/texture.h"

#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::SurfaceBounds;
using exec::TextureJob;
using exec::TextureLod;
using exec::TextureOp;
using exec::TextureQuery;
using exec::TextureShape;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;

namespace {

constexpr uint64_t kRow = 128, kWideRow = 256;  // bytes of 32 lanes' words

TextureShape shapeOf(const Instruction& in) {
  for (Mod m : in.mods) {
    switch (m) {
      case Mod::geom_1d: return TextureShape::d1;
      case Mod::geom_2d: return TextureShape::d2;
      case Mod::geom_3d: return TextureShape::d3;
      case Mod::geom_a1d: return TextureShape::layered1;
      case Mod::geom_a2d: return TextureShape::layered2;
      case Mod::geom_cube: return TextureShape::cube;
      case Mod::geom_acube: return TextureShape::layeredCube;
      default: break;
    }
  }
  throw Unsupported("multisampled textures are not supported");
}

// The coordinates that count; the others of the vector are padding.
unsigned coordinatesOf(TextureShape s) {
  switch (s) {
    case TextureShape::d1: return 1;
    case TextureShape::d2:
    case TextureShape::layered1: return 2;
    case TextureShape::d3:
    case TextureShape::layered2:
    case TextureShape::cube: return 3;
    default: return 4;
  }
}

TextureQuery queryOf(const Instruction& in) {
  for (Mod m : in.mods) {
    switch (m) {
      case Mod::width: return TextureQuery::width;
      case Mod::height: return TextureQuery::height;
      case Mod::depth: return TextureQuery::depth;
      case Mod::array_size: return TextureQuery::layers;
      case Mod::num_mipmap_levels: return TextureQuery::levels;
      case Mod::normalized_coords: return TextureQuery::normalized;
      default: break;
    }
  }
  throw Unsupported("this property of a texture cannot be asked for");
}

const Operand& at(const Operand& o, size_t i) { return o.kind == Operand::Kind::vector ? o.elements.at(i) : o; }
size_t countOf(const Operand& o) { return o.kind == Operand::Kind::vector ? o.elements.size() : 1; }

}  // namespace

Value* FunctionCodegen::textureRow(Value* buffer, unsigned row, uint64_t bytes) {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), buffer, row * bytes);
}

Value* FunctionCodegen::textureHandles(const Operand& o) {
  Operand handle;
  if (o.kind == Operand::Kind::address && o.ref == Operand::Ref::none) {
    handle.kind = Operand::Kind::reg;
    handle.reg = o.reg;
    handle.component = o.component;
    handle.pos = o.pos;
  } else {
    handle = o;
  }
  if (handle.kind != Operand::Kind::reg) {
    // A reference of the module: its variable holds the handle.
    if (handle.ref != Operand::Ref::moduleVar)
      throw Unsupported("a texture or surface that is neither an object nor a reference of the module");
    Value* address =
        b.CreateAdd(symbolAddress(handle), warpField(offsetof(exec::WarpState, deviceDelta), b.getInt64Ty(), "delta"));
    Value* held = b.CreateAlignedLoad(b.getInt64Ty(), b.CreateIntToPtr(address, b.getPtrTy()), llvm::Align(8));
    return spill(b.CreateVectorSplat(kWarpSize, held), 0);
  }
  return spill(source(handle, ScalarType::b64), 0);
}

void FunctionCodegen::textureCoordinates(const Operand& o, unsigned count, Value* rows) {
  if (countOf(o) < count) throw Unsupported("too few coordinates");
  for (unsigned i = 0; i < count; ++i)
    b.CreateAlignedStore(source(at(o, i), ScalarType::b32), textureRow(rows, i, kRow), llvm::Align(64));
}

// The description travels as a constant of the module.
Value* FunctionCodegen::textureJob(const exec::TextureJob& job) {
  static_assert(std::is_trivially_copyable_v<TextureJob>);
  const llvm::StringRef bytes(reinterpret_cast<const char*>(&job), sizeof job);
  auto* data = llvm::ConstantDataArray::getString(b.getContext(), bytes, false);
  return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "job");
}

bool FunctionCodegen::emitTexture(const Instruction& in) {
  switch (in.op) {
    case Opcode::tex:
    case Opcode::tld4: emitSample(in); return true;
    case Opcode::suld:
    case Opcode::sust: emitSurface(in); return true;
    case Opcode::txq:
    case Opcode::suq: {
      lanes = kWarpSize;
      TextureJob job;
      job.op = TextureOp::query;
      job.query = queryOf(in);
      markPosition(in);
      Value* handles = textureHandles(in.operands.at(1));
      Value* out = fragmentBuffer(1);
      llvm::Type* p = b.getPtrTy();
      b.CreateCall(k_.helper("sonde_texture", b.getVoidTy(), {p, p, p, p, b.getInt32Ty(), p}),
                   {warp_, textureJob(job), handles, out, effectMask(), out});
      store(in.operands[0], b.CreateAlignedLoad(type(ScalarType::b32), out, llvm::Align(64)), ScalarType::b32);
      return true;
    }
    default: return false;
  }
}

// tex d, [texture, {coordinates}] {, level | dx, dy}; tld4 d, [texture, {coordinates}].
void FunctionCodegen::emitSample(const Instruction& in) {
  lanes = kWarpSize;
  const Operand* d = &in.operands.at(0);
  const Operand* present = nullptr;
  if (d->kind == Operand::Kind::predPair) {
    present = &d->elements.at(1);
    d = &d->elements.at(0);
  }
  const Operand& where = in.operands.at(1);
  if (where.kind != Operand::Kind::texture || where.elements.size() != 2)
    throw Unsupported("separate samplers are not supported");
  const ScalarType result = in.type(0);
  if (ptx::bitsOf(result) != 32 || result == ScalarType::f16x2)
    throw Unsupported("texels of this type are not supported");
  TextureJob job;
  job.op = in.op == Opcode::tld4 ? TextureOp::gather : TextureOp::sample;
  job.shape = shapeOf(in);
  job.integerCoordinates = !ptx::isFloat(in.type(1));
  job.counts = countingMemory();
  job.component = in.has(Mod::g) ? 1 : in.has(Mod::b) ? 2 : in.has(Mod::a) ? 3 : 0;
  markPosition(in);
  Value* handles = textureHandles(where.elements[0]);
  Value* rows = fragmentBuffer(0);
  textureCoordinates(where.elements[1], coordinatesOf(job.shape), rows);
  if (in.has(Mod::level)) {
    job.lod = TextureLod::level;
    b.CreateAlignedStore(source(in.operands.at(2), ScalarType::b32), textureRow(rows, exec::kTextureLodRow, kRow),
                         llvm::Align(64));
  } else if (in.has(Mod::grad)) {
    job.lod = TextureLod::gradient;
    for (unsigned g = 0; g < 2; ++g)
      for (unsigned i = 0; i < std::min<size_t>(countOf(in.operands.at(2 + g)), 3); ++i)
        b.CreateAlignedStore(source(at(in.operands[2 + g], i), ScalarType::b32),
                             textureRow(rows, exec::kTextureLodRow + g * exec::kTextureGradientRows + i, kRow),
                             llvm::Align(64));
  }
  Value* out = fragmentBuffer(1);
  llvm::Type* p = b.getPtrTy();
  b.CreateCall(k_.helper("sonde_texture", b.getVoidTy(), {p, p, p, p, b.getInt32Ty(), p}),
               {warp_, textureJob(job), handles, rows, effectMask(), out});
  for (unsigned i = 0; i < countOf(*d); ++i)
    store(at(*d, i), b.CreateAlignedLoad(type(ScalarType::b32), textureRow(out, i, kRow), llvm::Align(64)),
          ScalarType::b32);
  if (present && present->kind != Operand::Kind::sink) store(*present, constantInt(1, 1), ScalarType::pred);
}

// suld.b d, [surface, {coordinates}]; sust.b [surface, {coordinates}], d. The first axis counts bytes.
void FunctionCodegen::emitSurface(const Instruction& in) {
  lanes = kWarpSize;
  if (!in.has(Mod::b)) throw Unsupported("formatted surface stores are not supported");
  const bool loads = in.op == Opcode::suld;
  const Operand &where = in.operands.at(loads ? 1 : 0), &data = in.operands.at(loads ? 0 : 1);
  if (where.kind != Operand::Kind::texture || where.elements.size() != 2)
    throw Unsupported("a surface and its coordinates are expected");
  const ScalarType t = in.type();
  TextureJob job;
  job.op = loads ? TextureOp::load : TextureOp::store;
  job.shape = shapeOf(in);
  job.bounds = in.has(Mod::clamp)  ? SurfaceBounds::clamp
               : in.has(Mod::zero) ? SurfaceBounds::zero
                                   : SurfaceBounds::trap;
  job.elementBytes = static_cast<uint8_t>(ptx::bitsOf(t) / 8);
  job.elements = static_cast<uint8_t>(countOf(data));
  markPosition(in);
  Value* handles = textureHandles(where.elements[0]);
  Value* rows = fragmentBuffer(0);
  textureCoordinates(where.elements[1], coordinatesOf(job.shape), rows);
  Value* words = fragmentBuffer(1);
  llvm::Type* wide = form(b.getInt64Ty());
  if (!loads)
    for (unsigned i = 0; i < job.elements; ++i)
      b.CreateAlignedStore(b.CreateZExt(source(at(data, i), t), wide), textureRow(words, i, kWideRow), llvm::Align(64));
  llvm::Type* p = b.getPtrTy();
  b.CreateCall(k_.helper("sonde_surface", b.getVoidTy(), {p, p, p, p, b.getInt32Ty(), p}),
               {warp_, textureJob(job), handles, rows, effectMask(), words});
  if (!loads) return;
  for (unsigned i = 0; i < job.elements; ++i) {
    Value* word = b.CreateAlignedLoad(wide, textureRow(words, i, kWideRow), llvm::Align(64));
    store(at(data, i), b.CreateTrunc(word, type(t)), t);
  }
}

}  // namespace sonde::softgpu::jit
