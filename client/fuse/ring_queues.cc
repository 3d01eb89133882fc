#include "client/fuse/ring_queues.h"

#include <liburing.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client/fuse/queue_mark.h"
#include "common/base/log.h"

namespace weir::client {
namespace {

constexpr Duration kUnusedFor = std::chrono::seconds(1);
constexpr size_t kRingPage = 4096;
static_assert(kRingHeaderRoom <= kRingPage);

// Runs the calling thread on one processor. False: it may not run there.
bool RunOn(uint16_t processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  return sched_setaffinity(0, sizeof(only), &only) == 0;
}

}  // namespace

void RingEntry::Complete(int32_t result, uint32_t /*flags*/) {
  queues->Ended(*this, result);
}

// What does not fit is no answer that the kernel would take by /dev/fuse either.
void RingEntry::Answer(std::span<const iovec> parts) {
  if (!PutAnswer(parts, headers, payload)) {
    fuse_out_header error{sizeof(error), -EIO, number};
    const iovec instead{&error, sizeof(error)};
    (void)PutAnswer({&instead, 1}, headers, payload);
  }
  queues->GiveBack(*this);
}

RingQueues::RingQueues(Reactor& reactor, Inbox& inbox, RingRequests& requests, Options options)
    : reactor_(reactor),
      inbox_(inbox),
      requests_(requests),
      options_(std::move(options)),
      depths_(options_.processors.size(), RingDepth(options_.depth)) {}

RingQueues::~RingQueues() {
  for (const auto& block : blocks_) munmap(block->memory, block->bytes);
}

Status RingQueues::Map() {
  for (size_t queue = 0; queue < depths_.size(); ++queue) {
    WEIR_RETURN_IF_ERROR(AddBlock(queue, depths_[queue].Begin()));
  }
  return Status::Ok();
}

Status RingQueues::AddBlock(size_t queue, size_t count) {
  auto block = std::make_unique<Block>();
  const size_t stride = kRingPage + options_.payload_bytes;
  block->bytes = count * stride;
  void* const memory = mmap(nullptr, block->bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Status::FromErrno(errno, "memory for requests in rings");
  (void)madvise(memory, block->bytes, MADV_NOHUGEPAGE);  // a small request takes a page
  block->memory = static_cast<uint8_t*>(memory);
  block->headers = std::make_unique<RingHeaders[]>(count);
  block->entries = std::make_unique<RingEntry[]>(count);
  block->count = count;
  for (size_t i = 0; i < count; ++i) {
    RingEntry& entry = block->entries[i];
    entry.queues = this;
    entry.queue = queue;
    entry.headers = &block->headers[i];
    entry.payload = {block->memory + i * stride + kRingPage, options_.payload_bytes};
    entry.buffers[0] = {entry.headers, sizeof(RingHeaders)};
    entry.buffers[1] = {entry.payload.data(), entry.payload.size()};
  }
  entries_ += count;
  blocks_.push_back(std::move(block));
  return Status::Ok();
}

void RingQueues::Start(int device) {
  device_ = device;
  cpu_set_t allowed, ours;
  CPU_ZERO(&ours);
  for (const uint16_t processor : options_.processors) CPU_SET(processor, &ours);
  // A wake-up of another processor takes longer than the request.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) CPU_AND(&ours, &ours, &allowed);
  if (CPU_COUNT(&ours) > 0) (void)sched_setaffinity(0, sizeof(ours), &ours);
  for (const auto& block : blocks_) Register(*block);
}

void RingQueues::Register(Block& block) {
  for (size_t i = 0; i < block.count; ++i) Send(block.entries[i], RingCommand::kRegister);
}

void RingQueues::Send(RingEntry& entry, RingCommand command) {
  io_uring* const ring = reactor_.ring();
  io_uring_sqe* sqe = io_uring_get_sqe(ring);
  while (sqe == nullptr) {
    io_uring_submit(ring);
    sqe = io_uring_get_sqe(ring);
  }
  RingCommandArea area;
  area.commit_id = entry.number;
  area.queue = options_.processors[entry.queue];
  std::memset(sqe, 0, 2 * sizeof(*sqe));
  sqe->opcode = IORING_OP_URING_CMD;
  sqe->fd = device_;
  sqe->cmd_op = static_cast<uint32_t>(command);
  sqe->addr = reinterpret_cast<uint64_t>(entry.buffers);
  sqe->len = 2;
  sqe->user_data = Reactor::TagOf(&entry);
  std::memcpy(reinterpret_cast<uint8_t*>(sqe) + offsetof(io_uring_sqe, cmd), &area, sizeof(area));
}

void RingQueues::Ended(RingEntry& entry, int32_t result) {
  if (result >= 0) {
    entry.registered = true;
    return Take(entry);
  }
  depths_[entry.queue].Lose();
  --entries_;
  // Else the mount has ended.
  const bool refusal =
      taken_ == 0 && !entry.registered && result != -ENOTCONN && result != -ECONNABORTED;
  if (refusal && !std::exchange(refused_, true)) options_.on_refusal(-result);
}

void RingQueues::Take(RingEntry& entry) {
  ++taken_;
  entry.dirty = std::max<size_t>(entry.dirty, entry.headers->payload_bytes);
  entry.taken = true;
  Grow(entry.queue, depths_[entry.queue].Take());
  const std::span<uint8_t> request = AssembleRequest(*entry.headers, entry.payload);
  fuse_in_header header{};
  std::memcpy(&header, entry.headers->in_out, sizeof(header));
  entry.number = header.unique;
  if (request.empty()) {
    WEIR_LOG_ERROR("a request of {} bytes came with {} behind its headers", header.len,
                   entry.headers->payload_bytes);
    return entry.Answer({});
  }
  if (header.opcode == FUSE_NOTIFY_REPLY) {
    inbox_.Take(request);
    fuse_out_header done{sizeof(done), 0, header.unique};
    const iovec part{&done, sizeof(done)};
    return entry.Answer({&part, 1});
  }
  requests_.Add(header.unique, &entry);
  if (Inbox::IsLarge(request.size())) {
    inbox_.TakeLarge(Buffer::Borrowed(request));
  } else {
    inbox_.Take(request);
  }
}

void RingQueues::Grow(size_t queue, size_t count) {
  if (count == 0) return;
  const Status status = AddBlock(queue, count);
  if (status.ok()) return Register(*blocks_.back());
  for (size_t i = 0; i < count; ++i) depths_[queue].Lose();
}

void RingQueues::GiveBack(RingEntry& entry) {
  if (reactor_.InLoop()) return Commit(entry);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = answered_.empty();
    answered_.push_back(&entry);
  }
  if (first) reactor_.Post([this] { CommitOthers(); });
}

void RingQueues::CommitOthers() {
  std::vector<RingEntry*> answered;
  {
    const std::lock_guard lock(mutex_);
    answered.swap(answered_);
  }
  for (RingEntry* entry : answered) Commit(*entry);
}

void RingQueues::Commit(RingEntry& entry) {
  entry.dirty = std::max<size_t>(entry.dirty, entry.headers->payload_bytes);
  entry.taken = entry.resting = false;
  if (entry.dirty > 0) RestLater();
  depths_[entry.queue].Return();
  Send(entry, RingCommand::kCommitAndFetch);
}

void RingQueues::RestLater() {
  if (std::exchange(resting_soon_, true)) return;
  (void)reactor_.RunAt(SystemClock::Get().Now() + kUnusedFor, [this] { Rest(); });
}

// An answer that was put into an entry now is read by the kernel when this turn ends: so only what
// has been left alone from one look to the next.
void RingQueues::Rest() {
  resting_soon_ = false;
  uint64_t bytes = 0;
  bool more = false;
  for (const auto& block : blocks_) {
    for (size_t i = 0; i < block->count; ++i) {
      RingEntry& entry = block->entries[i];
      if (entry.dirty == 0) continue;
      if (!entry.taken && std::exchange(entry.resting, true)) {
        const size_t pages = (entry.dirty + kRingPage - 1) / kRingPage * kRingPage;
        (void)madvise(entry.payload.data() - kRingPage, kRingPage + pages, MADV_DONTNEED);
        entry.dirty = 0;
      } else {
        more = true;
        bytes += entry.dirty;
      }
    }
  }
  bytes_ = bytes;
  if (more) RestLater();
}

// A mark goes to the queue of the processor that asks for it.
void RingQueues::Mark(uint64_t mark, const std::function<void()>& refused) {
  cpu_set_t before;
  const bool known = sched_getaffinity(0, sizeof(before), &before) == 0;
  bool moved = false;
  for (const uint16_t processor : options_.processors) {
    const bool there = known && CPU_COUNT(&before) == 1 && CPU_ISSET(processor, &before);
    if (!there) moved = true;
    if (!(there || RunOn(processor)) || !AskForMark(device_, mark)) refused();
  }
  if (moved && known) (void)sched_setaffinity(0, sizeof(before), &before);
}

RingQueues::Counters RingQueues::counters() const {
  return {taken_, entries_, bytes_};
}

}  // namespace weir::client
