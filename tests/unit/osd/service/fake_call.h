// FakeCall: a request as the RPC server would hand it over; keeps the answer for the test.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/net/rpc.h"

namespace weir::osd::testing {

struct Answer {
  Status status;
  std::string body;
  Buffer payload;
};

class FakeCall final : public net::IncomingCall {
 public:
  FakeCall(uint32_t method, uint64_t session, std::string body, Buffer payload,
           std::shared_ptr<std::optional<Answer>> answer)
      : answer_(std::move(answer)) {
    method_ = method;
    sub_session_ = session;
    body_ = std::move(body);
    payload_ = std::move(payload);
  }
  using net::IncomingCall::Respond;
  void Respond(Status status, std::string body, Buffer payload) override {
    WEIR_CHECK(!answer_->has_value(), "answered twice");
    *answer_ = Answer{std::move(status), std::move(body), std::move(payload)};
  }

 private:
  std::shared_ptr<std::optional<Answer>> answer_;
};

}  // namespace weir::osd::testing
