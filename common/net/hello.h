// HELLO in bytes: what a client asks at a control endpoint, what a server answers, and how each
// stream begins; common/wire/PROTOCOL.md has the rules. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/net/transport.h"

namespace weir::net {

// Tells the answer to one question from that to another.
struct HelloQuestion {
  uint64_t session = 0;
  uint64_t number = 0;
};
Message EncodeHello(const HelloQuestion& question);
Message EncodeHelloAnswer(const HelloQuestion& question, uint64_t incarnation,
                          const StreamAddresses& streams);

struct HelloAnswer {
  uint64_t incarnation = 0;
  StreamAddresses streams;
};
// kBadMessage: it answers something else. kNotSupported: the server does not understand our
// version; the text names what it does.
Result<HelloAnswer> DecodeHelloAnswer(const Message& message, const HelloQuestion& question);

// The first message on a stream.
Message EncodeStreamStart(uint64_t streams_id);
bool IsStreamStart(const Message& message, uint64_t streams_id);

}  // namespace weir::net
