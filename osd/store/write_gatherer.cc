#include "osd/store/write_gatherer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace weir::osd {

void WriteGatherer::Write(uint64_t offset, Buffer buffer, BlockDevice::Done done) {
  if (buffer.size() > kSmallMax) {
    return device_.WriteAsync(offset, std::move(buffer), std::move(done));
  }
  {
    std::lock_guard lock(mutex_);
    if (under_way_ > 0) {
      waiting_.push_back({offset, std::move(buffer), std::move(done)});
      return;
    }
    ++under_way_;
  }
  Run alone;
  alone.push_back({offset, std::move(buffer), std::move(done)});
  Send(std::move(alone));
}

std::vector<WriteGatherer::Run> WriteGatherer::Join(std::vector<Waiting> waiting) {
  std::sort(waiting.begin(), waiting.end(),
            [](const Waiting& a, const Waiting& b) { return a.offset < b.offset; });
  std::vector<Run> runs;
  uint64_t end = 0, bytes = 0;
  for (Waiting& write : waiting) {
    if (runs.empty() || write.offset != end || bytes + write.buffer.size() > kRunMax) {
      runs.emplace_back();
      bytes = 0;
    }
    end = write.offset + write.buffer.size();
    bytes += write.buffer.size();
    runs.back().push_back(std::move(write));
  }
  return runs;
}

void WriteGatherer::Send(Run run) {
  const uint64_t offset = run.front().offset;
  Buffer out = run.front().buffer;
  if (run.size() > 1) {
    size_t bytes = 0;
    for (const Waiting& write : run) bytes += write.buffer.size();
    out = Buffer::Aligned(bytes);
    uint8_t* to = out.data();
    for (const Waiting& write : run) {
      std::memcpy(to, write.buffer.data(), write.buffer.size());
      to += write.buffer.size();
    }
  }
  auto shared = std::make_shared<Run>(std::move(run));
  device_.WriteAsync(offset, std::move(out), [this, shared](const Status& status) {
    Completed();  // the device first: it has nothing to do
    for (Waiting& write : *shared) write.done(status);
  });
}

void WriteGatherer::Completed() {
  std::vector<Run> runs;
  {
    std::lock_guard lock(mutex_);
    if (--under_way_ > 0 || waiting_.empty()) return;
    runs = Join(std::exchange(waiting_, {}));
    under_way_ = runs.size();
  }
  for (Run& run : runs) Send(std::move(run));
}

}  // namespace weir::osd
