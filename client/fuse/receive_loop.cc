#include "client/fuse/receive_loop.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "client/fuse/fuse_api.h"
#include "client/fuse/init_reply.h"
#include "client/fuse/newer_requests.h"
#include "common/base/short_turns.h"
#include "common/net/transport.h"

namespace weir::client {
namespace {

constexpr size_t kLarge = 128UL << 10;  // a request whose bytes take long to move

constexpr auto kWakeAgain = std::chrono::milliseconds(1);

thread_local uint64_t request_number = 0;
thread_local uint32_t request_opcode = 0;
thread_local uint32_t request_read_bytes = 0;
thread_local uint64_t offered_init_flags = 0;
thread_local bool request_drops_set_ids = false;

// Breaks off a thread's wait for a request, and does nothing else.
int WakeSignal() {
  static const int number = [] {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    sigaction(SIGRTMIN, &nothing, nullptr);
    return SIGRTMIN;
  }();
  return number;
}

fuse_in_header HeaderOf(std::span<const uint8_t> request) {
  fuse_in_header header{};
  if (request.size() >= sizeof(header)) std::memcpy(&header, request.data(), sizeof(header));
  return header;
}

uint32_t ReadBytesOf(const fuse_in_header& header, std::span<const uint8_t> request) {
  fuse_read_in read{};
  if (header.opcode != FUSE_READ || request.size() < sizeof(header) + sizeof(read)) return 0;
  std::memcpy(&read, request.data() + sizeof(header), sizeof(read));
  return read.size;
}

ssize_t ReadRequest(int fd, void* buffer, size_t size, void* /*userdata*/) {
  return read(fd, buffer, size);
}

// libfuse sends a header and, unless it is an error, a fuse_init_out.
ssize_t WriteReply(int fd, iovec* parts, int count, void* /*userdata*/) {
  if (request_opcode == FUSE_INIT && count == 2) {
    AddInitFlags(offered_init_flags, kYoungerInitFlags,
                 {static_cast<uint8_t*>(parts[1].iov_base), parts[1].iov_len});
  }
  return writev(fd, parts, count);
}

// Whether that thread of this process waits for something that signals may break off.
bool IsAsleep(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) return true;  // who cannot be looked at is not waited for
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos || stat[name_end + 2] == 'S';
}

// libfuse passes on other flags of a write only.
bool DropsSetIds(const fuse_in_header& header, std::span<const uint8_t> request) {
  fuse_write_in write{};
  if (header.opcode != FUSE_WRITE || request.size() < sizeof(header) + sizeof(write)) return false;
  std::memcpy(&write, request.data() + sizeof(header), sizeof(write));
  return (write.write_flags & FUSE_WRITE_KILL_SUIDGID) != 0;
}

}  // namespace

Status CompleteInitReply(fuse_session* session) {
  const fuse_custom_io io = {
      .writev = WriteReply, .read = ReadRequest, .splice_receive = nullptr, .splice_send = nullptr};
  const int error = fuse_session_custom_io(session, &io, fuse_session_fd(session));
  return error == 0 ? Status::Ok() : Status::FromErrno(-error, "cannot answer for libfuse");
}

uint64_t RequestNumber() {
  return request_number;
}

uint32_t RequestOpcode() {
  return request_opcode;
}

bool RequestDropsSetIds() {
  return request_drops_set_ids;
}

uint32_t RequestReadBytes() {
  return request_read_bytes;
}

void ReceiveLoop::Process(void* received) {
  auto* const buffer = static_cast<fuse_buf*>(received);
  const net::AnswerHere here;
  if ((buffer->flags & FUSE_BUF_IS_FD) != 0) return fuse_session_process_buf(session_, buffer);
  const std::span<uint8_t> request(static_cast<uint8_t*>(buffer->mem), buffer->size);
  MakeFamiliar(request);
  const fuse_in_header header = HeaderOf(request);
  request_number = header.unique;
  request_opcode = header.opcode;
  request_read_bytes = ReadBytesOf(header, request);
  if (header.opcode == FUSE_INIT) offered_init_flags = OfferedInitFlags(request);
  request_drops_set_ids = DropsSetIds(header, request);
  fuse_session_process_buf(session_, buffer);
  if (header.opcode == FUSE_INIT && on_init_ != nullptr) on_init_(request);
}

// Every thread that waits for a request is woken by the end of the connection.
int ReceiveLoop::ServeAlone(Taker* taker) {
  taker->thread = gettid();
  if (weight_ == Weight::kMost) WeighMost();
  bool ahead = false;
  const auto run_ahead = [&](bool wanted) {
    if (weight_ == Weight::kNormal || wanted == ahead) return;
    ahead = wanted && RunAheadOfTurns();
    if (!wanted) WeighMost();
  };
  {
    const std::lock_guard lock(mutex_);
    serving_.push_back(pthread_self());
  }
  fuse_buf buffer{};
  int result = 0;
  while (fuse_session_exited(session_) == 0 && !stopping_) {
    run_ahead(hurried_());
    ++taker->turns;
    taker->taking = true;
    result = fuse_session_receive_buf(session_, &buffer);
    taker->taking = false;
    if (result > 0 && buffer.size > kLarge) run_ahead(false);
    if (result > 0) Process(&buffer);
    ++taker->turns;
    if (result <= 0 && result != -EINTR) break;
  }
  if (!stopping_) fuse_session_exit(session_);
  std::free(buffer.mem);  // libfuse allocated it
  const std::lock_guard lock(mutex_);
  std::erase_if(serving_, [](pthread_t one) { return pthread_equal(one, pthread_self()) != 0; });
  return result < 0 ? result : 0;
}

int ReceiveLoop::Serve(uint32_t threads) {
  (void)WakeSignal();
  std::vector<int> results(threads < 1 ? 1 : threads, 0);
  {
    const std::lock_guard lock(mutex_);
    while (takers_.size() < results.size()) takers_.emplace_back();
  }
  std::vector<std::thread> others;
  for (size_t i = 1; i < results.size(); ++i) {
    others.emplace_back(
        [this, &result = results[i], taker = &takers_[i]] { result = ServeAlone(taker); });
  }
  results[0] = ServeAlone(&takers_[0]);
  for (std::thread& other : others) other.join();
  if (stopping_) return 0;
  fuse_session_reset(session_);
  for (const int result : results) {
    if (result != 0) return result;
  }
  return 0;
}

// While it sleeps in taking one it has none in its hands.
bool ReceiveLoop::Taker::Passed(uint64_t since) const {
  if (since % 2 == 0 || turns != since) return true;
  return taking && IsAsleep(thread) && (taking || turns != since);
}

std::vector<uint64_t> ReceiveLoop::Turns() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> turns;
  for (const Taker& taker : takers_) turns.push_back(taker.turns);
  return turns;
}

bool ReceiveLoop::HavePassed(const std::vector<uint64_t>& since) const {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < since.size(); ++i) {
    if (!takers_[i].Passed(since[i])) return false;
  }
  return true;
}

// A signal that comes just before a thread begins to wait is lost, so that it is sent again.
void ReceiveLoop::Stop() {
  stopping_ = true;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (serving_.empty()) return;
      for (const pthread_t thread : serving_) pthread_kill(thread, WakeSignal());
    }
    std::this_thread::sleep_for(kWakeAgain);
  }
}

}  // namespace weir::client
