// DecisionLog: everything that moved the scheduler of an OSD, in a file that `weir-sim replay`
// feeds to the same code again: a wrong order on a live disk becomes a run that can be repeated.
//
// The file is a line of text and then messages of common/wire/decisions.proto, each after its
// length. It takes some 200 bytes for each request and ends growing at kLongest.
// Threads: the owner of the scheduler.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "osd/decisions/event.h"

namespace weir::wire {
class Decision;
}

namespace weir::osd {

inline constexpr std::string_view kDecisionLogHead = "weirfs decisions 2\n";

class DecisionLog final : public qos::DecisionRecorder {
 public:
  static constexpr uint64_t kLongest = uint64_t{4} << 30;
  // A line for the log of the daemon.
  using Report = std::function<void(const std::string&)>;

  // Whether there is something of that name, before it is time to make the log. An empty path: no.
  static Status CheckNew(const std::string& path);
  // kExists: nothing is overwritten.
  static Result<std::unique_ptr<DecisionLog>> Create(const std::string& path, Report report);

  void Note(const qos::Decision& decision) override;

 private:
  DecisionLog(std::string path, Report report)
      : path_(std::move(path)), report_(std::move(report)) {}
  void Write(const wire::Decision& message);

  const std::string path_;
  const Report report_;
  std::ofstream file_;
  uint64_t written_ = 0;  // bytes
  EventMaker maker_;
};

}  // namespace weir::osd
