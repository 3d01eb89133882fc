#include "client/fuse/device_reader.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weir::client {
namespace {

// A write of the most bytes, with its headers.
constexpr size_t kLargestRequest = (1UL << 20) + 4096;
constexpr int kAtOnce = 8;  // a turn

}  // namespace

void DeviceReader::Start() {
  inbox_.Enter();
  buffer_ = FreeBuffer();
  watching_ = true;
  reactor_.WatchShared(device_, this);
}

void DeviceReader::Stop() {
  if (std::exchange(watching_, false)) reactor_.Unwatch(this);
  inbox_.Empty();
}

void DeviceReader::OnReadable() {
  for (int taken = 0; taken < kAtOnce && !inbox_.full(); ++taken) {
    if (!TakeOne()) return;
  }
}

bool DeviceReader::TakeOne() {
  const ssize_t got = read(device_, buffer_.get(), kLargestRequest);
  if (got > 0) {
    Give(static_cast<size_t>(got));
    return watching_;
  }
  // ENOENT: its process was killed before it was taken off.
  if (got < 0 && (errno == ENOENT || errno == EINTR)) return true;
  if (got == 0 || errno != EAGAIN) End(got == 0 ? ENODEV : errno);
  return false;
}

void DeviceReader::Give(size_t bytes) {
  if (!Inbox::IsLarge(bytes)) return inbox_.Take({buffer_.get(), bytes});
  // Its buffer comes back with the end of the handler.
  auto held = std::make_shared<Buffer>(std::exchange(buffer_, FreeBuffer()));
  inbox_.TakeLarge({held->get(), bytes}, [this, held] { free_.push_back(std::move(*held)); });
}

DeviceReader::Buffer DeviceReader::FreeBuffer() {
  if (free_.empty()) return Buffer(new uint8_t[kLargestRequest]);  // pages as they are used
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void DeviceReader::End(int error) {
  Stop();
  on_end_(error);
}

}  // namespace weir::client
