// SPDX-License-Identifier: Apache-2.0
// A reader of the protobuf wire format that shares nothing with the writer
// under test: it knows no schema, only varints, fixed sizes and lengths.
#ifndef SONDE_TESTS_CLI_PROTO_TREE_H_
#define SONDE_TESTS_CLI_PROTO_TREE_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::test {

class ProtoMessage {
 public:
  explicit ProtoMessage(std::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
      const uint64_t key = varint(bytes, at);
      Value v;
      v.field = static_cast<uint32_t>(key >> 3);
      if (v.field == 0) throw std::runtime_error("field number 0");
      switch (key & 7) {
        case 0: v.number = varint(bytes, at); break;
        case 1: v.number = fixed(bytes, at, 8); break;
        case 5: v.number = fixed(bytes, at, 4); break;
        case 2: {
          const uint64_t n = varint(bytes, at);
          if (n > bytes.size() - at) throw std::runtime_error("length beyond the end");
          v.bytes = bytes.substr(at, n);
          at += n;
          break;
        }
        default: throw std::runtime_error("unknown wire type");
      }
      values_.push_back(v);
    }
  }

  bool has(uint32_t field) const { return find(field) != nullptr; }
  uint64_t number(uint32_t field) const { return find(field) != nullptr ? find(field)->number : 0; }
  double real(uint32_t field) const {
    const uint64_t bits = number(field);
    double d;
    std::memcpy(&d, &bits, sizeof d);
    return d;
  }
  std::string text(uint32_t field) const {
    return find(field) != nullptr ? std::string(find(field)->bytes) : std::string();
  }
  ProtoMessage message(uint32_t field) const {
    return ProtoMessage(find(field) != nullptr ? find(field)->bytes : std::string_view());
  }
  std::vector<ProtoMessage> messages(uint32_t field) const {
    std::vector<ProtoMessage> all;
    for (const Value& v : values_)
      if (v.field == field) all.emplace_back(v.bytes);
    return all;
  }
  std::vector<uint64_t> numbers(uint32_t field) const {
    std::vector<uint64_t> all;
    for (const Value& v : values_)
      if (v.field == field) all.push_back(v.number);
    return all;
  }

 private:
  struct Value {
    uint32_t field = 0;
    uint64_t number = 0;
    std::string_view bytes;
  };
  const Value* find(uint32_t field) const {
    for (const Value& v : values_)
      if (v.field == field) return &v;
    return nullptr;
  }
  static uint64_t varint(std::string_view b, size_t& at) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= b.size()) throw std::runtime_error("varint beyond the end");
      const auto c = static_cast<unsigned char>(b[at++]);
      v |= uint64_t{c & 0x7fu} << shift;
      if (c < 0x80) return v;
    }
    throw std::runtime_error("varint too long");
  }
  static uint64_t fixed(std::string_view b, size_t& at, size_t n) {
    if (n > b.size() - at) throw std::runtime_error("fixed number beyond the end");
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= uint64_t{static_cast<unsigned char>(b[at++])} << (8 * i);
    return v;
  }
  std::vector<Value> values_;
};

}  // namespace sonde::test

#endif  // SONDE_TESTS_CLI_PROTO_TREE_H_
