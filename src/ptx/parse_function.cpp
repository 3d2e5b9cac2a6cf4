// SPDX-License-Identifier: Apache-2.0
//
// Functions: signatures, performance directives, blocks and the names in them.
#include "ptx/parser_impl.h"

namespace sonde::ptx {

// --- signatures

bool Parser::function(const Linkage& linkage, bool kernel) {
  Function f;
  f.isKernel = kernel;
  f.isExtern = linkage.isExtern;
  f.isVisible = linkage.isVisible;
  f.isWeak = linkage.isWeak;
  f.pos = tok_.pos;
  advance();
  while (tok_.isDirective(".attribute")) {
    bool managed = false;
    const SourcePos pos = tok_.pos;
    if (!attributes(managed, f.isUnified, f.unifiedId)) return false;
    if (managed) return error(pos, "a function cannot be .managed");
  }
  if (tok_.is('(')) {
    if (kernel) return error(tok_.pos, "a kernel (.entry) returns nothing");
    if (!parameterList(f.returns, VariableScope::parameter)) return false;
  }
  if (!tok_.isName()) return unexpected(kernel ? "the kernel's name" : "the function's name");
  f.name = tok_.text;
  f.pos = tok_.pos;
  advance();
  if (tok_.is('(') && !parameterList(f.params, VariableScope::parameter)) return false;
  if (!functionDirectives(f)) return false;
  layOutParameters(f);
  const bool definition = tok_.is('{');
  if (!definition && !tok_.is(';')) return unexpected("'{' or ';' after the signature of '" + f.name + "'");
  if (definition && f.isExtern) return error(tok_.pos, "'" + f.name + "' is .extern and cannot have a body");
  f.hasBody = definition;
  uint32_t id;
  if (!adopt(std::move(f), id)) {
    if (definition) {  // step over the body, so that what follows it is still read
      std::string_view text;
      if (!lex_.rawBlock(text))
        tok_ = {};
      else
        advance();
      return true;
    }
    return false;
  }
  functionId_ = id;
  if (definition) return body(module_.functions[id]);
  return endStatement("the declaration");
}

bool Parser::dimensions(std::array<uint32_t, 3>& out) {
  out = {1, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    uint64_t n;
    if (!integerToken(n, "a dimension", 0xffffffff)) return false;
    out[i] = static_cast<uint32_t>(n);
    if (!accept(',')) break;
  }
  return true;
}

bool Parser::functionDirectives(Function& f) {
  auto number = [&](uint32_t& out) {
    const std::string what(tok_.text);
    advance();
    uint64_t n;
    if (!integerToken(n, what, 0xffffffff)) return false;
    out = static_cast<uint32_t>(n);
    return true;
  };
  PerformanceHints& h = f.hints;
  while (tok_.kind == Token::Kind::directive) {
    const std::string_view d = tok_.text;
    bool ok = true;
    if (d == ".maxntid")
      advance(), ok = dimensions(h.maxntid);
    else if (d == ".reqntid")
      advance(), ok = dimensions(h.reqntid);
    else if (d == ".reqnctapercluster")
      advance(), ok = dimensions(h.reqnctapercluster);
    else if (d == ".minnctapersm" || d == ".maxnctapersm")
      ok = number(h.minnctapersm);
    else if (d == ".maxnreg")
      ok = number(h.maxnreg);
    else if (d == ".maxclusterrank")
      ok = number(h.maxclusterrank);
    else if (d == ".abi_preserve")
      ok = number(h.abiPreserve);
    else if (d == ".abi_preserve_control")
      ok = number(h.abiPreserveControl);
    else if (d == ".noreturn")
      advance(), h.noreturn = true;
    else if (d == ".explicitcluster")
      advance(), h.explicitCluster = true;
    else if (d == ".blocksareclusters")
      advance(), h.blocksareclusters = true;
    else if (d == ".pragma")
      ok = pragma(f.pragmas);
    else if (d == ".attribute") {
      bool managed = false;
      ok = attributes(managed, f.isUnified, f.unifiedId);
    } else {
      return unexpected("a performance directive, '{' or ';'");
    }
    if (!ok) return false;
  }
  return true;
}

void Parser::layOutParameters(Function& f) const {
  uint64_t offset = 0;
  f.paramOffsets.clear();
  for (const auto& p : f.params) {
    const uint64_t align = p.space == StateSpace::reg ? 1 : p.align;
    const uint64_t size = p.space == StateSpace::reg ? 0 : p.sizeBytes;
    offset = (offset + align - 1) & ~(align - 1);
    f.paramOffsets.push_back(static_cast<uint32_t>(offset));
    offset += size;
  }
  f.paramBytes = static_cast<uint32_t>(offset);
}

// Enters a function into the module. A declaration and its definition are one entry.
bool Parser::adopt(Function&& f, uint32_t& id) {
  if (f.params.size() > 65536) return error(f.pos, "'" + f.name + "' has too many parameters");
  uint64_t total = 0;
  for (const auto& p : f.params) total += p.sizeBytes + p.align;
  if (total > 0xffffffff) return error(f.pos, "the parameters of '" + f.name + "' are too large");
  if (moduleVariables_.count(f.name)) return error(f.pos, "'" + f.name + "' is already the name of a variable");
  const auto [it, isNew] = functions_.try_emplace(f.name, static_cast<uint32_t>(module_.functions.size()));
  id = it->second;
  if (isNew) {
    module_.functions.push_back(std::move(f));
    return true;
  }
  Function& old = module_.functions[id];
  if (old.hasBody && f.hasBody)
    return error(f.pos, "'" + f.name + "' is already defined at line " + std::to_string(old.pos.line));
  auto same = [](const std::vector<Variable>& a, const std::vector<Variable>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i].sizeBytes != b[i].sizeBytes || a[i].space != b[i].space) return false;
    return true;
  };
  if (old.isKernel != f.isKernel || !same(old.returns, f.returns) || !same(old.params, f.params))
    return error(f.pos, "the signature of '" + f.name + "' differs from its declaration at line " +
                            std::to_string(old.pos.line));
  if (!old.hasBody && f.hasBody) {
    f.isVisible |= old.isVisible;
    f.isWeak |= old.isWeak;
    f.hints.noreturn |= old.hints.noreturn;
    old = std::move(f);
  }
  return true;
}

// --- bodies

bool Parser::body(Function& f) {
  fn_ = &f;
  names_.clear();
  ranges_.clear();
  declared_.clear();
  declaredRanges_.clear();
  renames_.clear();
  scopes_.clear();
  currentLoc_ = kNoId;
  const SourcePos open = tok_.pos;
  openScope(open);
  auto bindParameters = [&](std::vector<Variable>& list, Binding::Kind kind) {
    for (uint32_t i = 0; i < list.size(); ++i) {
      Token name;
      name.kind = Token::Kind::identifier;
      ownedTexts_.push_back(list[i].name);
      name.text = ownedTexts_.back();
      name.pos = list[i].pos;
      if (name.text == "_") continue;
      declared_.insert(list[i].name);
      if (list[i].space == StateSpace::reg) {
        list[i].regId = addRegister(list[i].name, list[i].type, list[i].vector);
        bind(name, Binding::Kind::reg, list[i].regId);
      } else {
        bind(name, kind, i);
      }
    }
  };
  bindParameters(f.returns, Binding::Kind::returnParam);
  bindParameters(f.params, Binding::Kind::param);
  advance();
  while (!stopped()) {
    if (tok_.kind == Token::Kind::end) {
      scopes_.clear();
      return error(open, "the body of '" + f.name + "' is never closed: no '}' matches this '{'");
    }
    if (tok_.is('}')) {
      if (scopes_.size() == 1) break;
      closeScope();
      advance();
      continue;
    }
    const SourcePos start = tok_.pos;
    openBraces_ = 0;
    if (statement()) continue;
    recover(start);
    if (tok_.kind == Token::Kind::directive &&
        (tok_.text == ".entry" || tok_.text == ".func" || tok_.text == ".visible")) {
      scopes_.clear();
      return true;
    }
  }
  if (stopped()) {
    scopes_.clear();
    return false;
  }
  closeScope();
  advance();
  return true;
}

bool Parser::statement() {
  if (accept(';')) return true;
  if (tok_.is('{')) {
    if (scopes_.size() >= kMaxScopes) return error(tok_.pos, "blocks are nested too deeply");
    openScope(tok_.pos);
    advance();
    return true;
  }
  if (tok_.isName()) {
    if (!lex_.colonFollows()) return instruction();
    const Token name = tok_;
    advance();
    advance();
    return labelOrTable(name);
  }
  if (tok_.is('@')) return instruction();
  if (tok_.kind != Token::Kind::directive) return unexpected("an instruction, a declaration, a label or '}'");
  const std::string_view d = tok_.text;
  if (d == ".reg") return registerStatement();
  if (d == ".loc") return loc();
  if (d == ".file") return file();
  if (d == ".pragma") {
    std::vector<std::string> texts;
    if (!pragma(texts)) return false;
    for (auto& t : texts) fn_->bodyPragmas.push_back({static_cast<uint32_t>(fn_->body.size()), std::move(t)});
    return true;
  }
  if (spaceFromName(d.substr(1)) != StateSpace::none) return variableStatement({}, true);
  if (d == ".entry" || d == ".func" || d == ".visible" || d == ".extern" || d == ".weak")
    return error(tok_.pos,
                 "found " + describe(tok_) + " inside the body of '" + fn_->name + "': a '}' is missing before it");
  return unexpected("an instruction or a declaration (.reg, .local, .shared, .param, .loc, .pragma)");
}

// .reg .b32 %r<10>, %x, %y;
bool Parser::registerStatement() {
  Variable head;
  if (!variableHead(head, VariableScope::function)) return false;
  do {
    if (!tok_.isName()) return unexpected("a register's name");
    const Token name = tok_;
    advance();
    if (accept('<')) {
      uint64_t count;
      if (!integerToken(count, "the number of registers", 0xffffffff) || !expect('>', "the number of registers"))
        return false;
      if (!registerRange(name, count, head.type, head.vector)) return false;
    } else {
      if (registers_ >= maxRegisters_) return error(name.pos, "too many registers in this module");
      const uint32_t id = addRegister(uniqueName(name.text), head.type, head.vector);
      if (!bind(name, Binding::Kind::reg, id)) return false;
    }
  } while (accept(','));
  return endStatement("the register declaration");
}

bool Parser::registerRange(const Token& name, uint64_t count, ScalarType type, uint8_t vector) {
  if (count > maxRegisters_ - registers_) return error(name.pos, "too many registers in this module");
  if (count == 0) return error(name.pos, "a range of 0 registers");
  const auto depth = static_cast<uint16_t>(scopes_.size());
  const std::string prefix(name.text);
  const auto known = ranges_.find(name.text);
  if (known != ranges_.end() && known->second.depth == depth)
    return error(name.pos, "'" + prefix + "<" + std::to_string(count) + ">' is already declared in this block");
  const auto first = static_cast<uint32_t>(fn_->registers.size());
  // Names must be looked up one by one only where an inner block may hide one.
  const bool careful = depth > 1 || !declared_.empty();
  auto& widest = declaredRanges_[prefix];
  for (uint64_t i = 0; i < count; ++i) {
    std::string n = prefix + std::to_string(i);
    if (careful && (i < widest || declared_.count(n))) {
      Binding b;
      if (lookUp(n, b) && b.depth == depth) return error(name.pos, "'" + n + "' is already declared in this block");
      n = uniqueName(n);
    }
    addRegister(std::move(n), type, vector);
  }
  if (count > widest) widest = static_cast<uint32_t>(count);
  scopes_.back().savedRanges.emplace_back(name.text, known != ranges_.end() ? known->second : Range{});
  ranges_[name.text] = {depth, first, static_cast<uint32_t>(count)};
  return true;
}

// What follows "name:": a .callprototype, a target table, or any statement.
bool Parser::labelOrTable(const Token& name) {
  if (tok_.isDirective(".callprototype")) return callPrototype(name);
  if (tok_.isDirective(".branchtargets")) return targetTable(name, false);
  if (tok_.isDirective(".calltargets")) return targetTable(name, true);
  auto& labels = scopes_.back().labels;
  const auto id = static_cast<uint32_t>(fn_->labels.size());
  if (!labels.emplace(name.text, id).second)
    return error(name.pos, "label '" + std::string(name.text) + "' is already defined in this block");
  fn_->labels.push_back({uniqueName(name.text), static_cast<uint32_t>(fn_->body.size()), name.pos});
  return true;
}

// name: .callprototype [(returns)] _ [(params)] [.noreturn] ;
bool Parser::callPrototype(const Token& name) {
  advance();
  Prototype p;
  p.pos = name.pos;
  if (tok_.is('(') && !parameterList(p.returns, VariableScope::prototype)) return false;
  if (!tok_.isName()) return unexpected("'_' in .callprototype");
  advance();
  if (tok_.is('(') && !parameterList(p.params, VariableScope::prototype)) return false;
  Function directives;
  if (!functionDirectives(directives)) return false;
  p.noreturn = directives.hints.noreturn;
  p.name = uniqueName(name.text);
  if (!bind(name, Binding::Kind::prototype, static_cast<uint32_t>(fn_->prototypes.size()))) return false;
  fn_->prototypes.push_back(std::move(p));
  return endStatement(".callprototype");
}

// name: .branchtargets a, b, c;   name: .calltargets f, g;
bool Parser::targetTable(const Token& name, bool isCall) {
  advance();
  BranchTargets t;
  t.isCall = isCall;
  t.instruction = static_cast<uint32_t>(fn_->body.size());
  t.pos = name.pos;
  const auto id = static_cast<uint32_t>(fn_->branchTargets.size());
  std::vector<LabelUse> uses;
  auto add = [&](std::string_view target, SourcePos pos) {
    if (!isCall) uses.push_back({id, kNoId, static_cast<uint32_t>(t.targets.size()), target, pos});
    t.targets.emplace_back(target);
    t.ids.push_back(kNoId);
  };
  do {
    if (!tok_.isName()) return unexpected(isCall ? "a function's name" : "a label");
    const Token target = tok_;
    advance();
    if (!isCall && accept('<')) {  // L<4>: L0, L1, L2, L3
      uint64_t count;
      if (!integerToken(count, "the number of labels", 65536) || !expect('>', "the number of labels")) return false;
      if (count > kMaxInitializerPadding - padding_) return error(target.pos, "too many labels");
      padding_ += static_cast<uint32_t>(count);
      for (uint64_t i = 0; i < count; ++i) {
        ownedTexts_.push_back(std::string(target.text) + std::to_string(i));
        add(ownedTexts_.back(), target.pos);
      }
      continue;
    }
    add(target.text, target.pos);
    if (isCall) {
      const auto fn = functions_.find(std::string(target.text));
      if (fn == functions_.end()) return error(target.pos, "undefined function '" + std::string(target.text) + "'");
      t.ids.back() = fn->second;
    }
  } while (accept(','));
  t.name = uniqueName(name.text);
  if (!bind(name, Binding::Kind::targets, id)) return false;
  fn_->branchTargets.push_back(std::move(t));
  auto& pending = scopes_.back().uses;
  pending.insert(pending.end(), uses.begin(), uses.end());
  return endStatement(isCall ? ".calltargets" : ".branchtargets");
}

}  // namespace sonde::ptx
