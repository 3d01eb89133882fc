// Values of the namespace store: one version byte, then the protobuf record of ns_values.proto.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "mds/format/ns_values.pb.h"

namespace weir::mds {

inline constexpr char kValueVersion = 1;

template <typename Record>
std::string EncodeValue(const Record& record) {
  std::string bytes(1, kValueVersion);
  record.AppendToString(&bytes);
  return bytes;
}

// kCorrupt for bytes that no version of WeirFS wrote; kNotSupported for those of a later one.
template <typename Record>
Result<Record> DecodeValue(std::string_view bytes) {
  if (bytes.empty()) return Status(ErrorCode::kCorrupt, "empty value in the namespace store");
  if (bytes[0] != kValueVersion) {
    return Status(ErrorCode::kNotSupported,
                  "namespace value of version " + std::to_string(int{bytes[0]}) +
                      "; this program reads version 1: start a newer weir-mds");
  }
  Record record;
  if (!record.ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size()) - 1)) {
    return Status(ErrorCode::kCorrupt,
                  "namespace value of type " + record.GetTypeName() + " does not parse");
  }
  return record;
}

}  // namespace weir::mds
