#include "common/net/hello.h"

#include "common/net/envelope.h"
#include "common/wire/rpc.pb.h"

namespace weir::net {
namespace {

wire::RpcHeader HeaderOf(const HelloQuestion& question) {
  wire::RpcHeader header;
  header.set_kind(wire::RpcHeader::HELLO);
  header.set_session(question.session);
  header.set_request_id(question.number);
  header.add_versions(kProtocolVersion);
  return header;
}

Status OtherVersions(const std::string& theirs) {
  return {ErrorCode::kNotSupported, "it speaks wire version " + theirs + ", this program version " +
                                        std::to_string(kProtocolVersion) +
                                        "; install the same release on both"};
}

Status CheckVersions(const wire::RpcHeader& header) {
  std::string theirs;
  for (const uint32_t version : header.versions()) {
    if (version == kProtocolVersion) return {};
    theirs += (theirs.empty() ? "" : ", ") + std::to_string(version);
  }
  return OtherVersions(theirs.empty() ? "(none)" : theirs);
}

}  // namespace

Message EncodeHello(const HelloQuestion& question) {
  return {*EncodeFrame(Direction::kToServer, HeaderOf(question), 0, kHelloVersion), {}};
}

Message EncodeHelloAnswer(const HelloQuestion& question, uint64_t incarnation,
                          const StreamAddresses& streams) {
  wire::RpcHeader header = HeaderOf(question);
  header.set_incarnation(incarnation);
  header.set_streams_id(streams.id);
  for (const std::string& endpoint : streams.endpoints) header.add_stream_endpoints(endpoint);
  return {*EncodeFrame(Direction::kToClient, header, 0, kHelloVersion), {}};
}

Result<HelloAnswer> DecodeHelloAnswer(const Message& message, const HelloQuestion& question) {
  wire::RpcHeader header;
  bool payload_matches = false;
  uint16_t version = 0;
  WEIR_RETURN_IF_ERROR(DecodeFrame(Direction::kToClient, message.header, message.payload.size(),
                                   &header, &payload_matches, &version));
  const bool ours = version == kHelloVersion && header.session() == question.session &&
                    header.request_id() == question.number;
  if (!ours) return {ErrorCode::kBadMessage, "that is no answer to HELLO"};
  // Version 1 knows no HELLO, and refuses it as a request.
  if (header.kind() == wire::RpcHeader::REPLY) return OtherVersions("1");
  if (header.kind() != wire::RpcHeader::HELLO) {
    return {ErrorCode::kBadMessage, "that is no answer to HELLO"};
  }
  WEIR_RETURN_IF_ERROR(CheckVersions(header));
  HelloAnswer answer;
  answer.incarnation = header.incarnation();
  answer.streams.id = header.streams_id();
  answer.streams.endpoints.assign(header.stream_endpoints().begin(),
                                  header.stream_endpoints().end());
  return answer;
}

Message EncodeStreamStart(uint64_t streams_id) {
  wire::RpcHeader header;
  header.set_kind(wire::RpcHeader::HELLO);
  header.set_streams_id(streams_id);
  return {*EncodeFrame(Direction::kToServer, header, 0), {}};
}

bool IsStreamStart(const Message& message, uint64_t streams_id) {
  wire::RpcHeader header;
  bool payload_matches = false;
  return DecodeFrame(Direction::kToServer, message.header, message.payload.size(), &header,
                     &payload_matches)
             .ok() &&
         header.kind() == wire::RpcHeader::HELLO && header.streams_id() == streams_id;
}

}  // namespace weir::net
