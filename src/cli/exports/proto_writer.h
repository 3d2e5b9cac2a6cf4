// SPDX-License-Identifier: Apache-2.0
// Appends fields in the protobuf wire format. Only what a writer of traces
// needs: varints, fixed64, doubles, text, and messages within messages.
#ifndef SONDE_CLI_EXPORTS_PROTO_WRITER_H_
#define SONDE_CLI_EXPORTS_PROTO_WRITER_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::exports {

class ProtoWriter {
 public:
  ProtoWriter& varint(uint32_t field, uint64_t value) {
    tag(field, 0);
    raw(value);
    return *this;
  }
  // A negative int32 or int64 takes ten bytes, as the format says.
  ProtoWriter& integer(uint32_t field, int64_t value) { return varint(field, static_cast<uint64_t>(value)); }
  ProtoWriter& fixed64(uint32_t field, uint64_t value) {
    tag(field, 1);
    for (int i = 0; i < 8; i++) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  ProtoWriter& real(uint32_t field, double value) { return fixed64(field, std::bit_cast<uint64_t>(value)); }
  ProtoWriter& text(uint32_t field, std::string_view value) {
    tag(field, 2);
    raw(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoWriter& message(uint32_t field, const ProtoWriter& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }

 private:
  void tag(uint32_t field, uint32_t wireType) { raw(uint64_t{field} << 3 | wireType); }
  void raw(uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes_ += static_cast<char>(v | 0x80);
    bytes_ += static_cast<char>(v);
  }
  std::string bytes_;
};

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_PROTO_WRITER_H_
