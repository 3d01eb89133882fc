// MessageReader: messages out of a stream of bytes, in which they follow each other with nothing
// in between; the envelope (envelope.h) tells how long each is. Pure; the bytes may be anything.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/net/envelope.h"
#include "common/net/transport.h"

namespace weir::net {

class MessageReader {
 public:
  explicit MessageReader(Direction receives) : receives_(receives) {}

  // Where the next bytes belong, at least one, once Take has said kNothing; and that so many of
  // them came.
  std::span<uint8_t> Room();
  void Came(size_t bytes);

  // kLost: what came is no frame of ours, so that nobody knows where the next would begin.
  enum class Taken : uint8_t { kNothing, kMessage, kLost };
  Taken Take(Message* message);

 private:
  Taken TakeHeader();

  const Direction receives_;
  std::vector<uint8_t> bytes_;  // from begin_ to end_: came and not taken
  size_t begin_ = 0;
  size_t end_ = 0;
  std::optional<FrameSizes> sizes_;  // of the message that has begun
  bool in_payload_ = false;          // its header is in begun_
  Message begun_;
  size_t filled_ = 0;  // bytes of its payload
};

}  // namespace weir::net
