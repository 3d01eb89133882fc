#include "client/fuse/request_handler.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "client/fuse/filesystem.h"
#include "client/fuse/init_reply.h"
#include "client/fuse/newer_requests.h"
#include "client/fuse/ring_queues.h"

namespace weir::client {
namespace {

constexpr size_t kKeptLeast = 512UL << 10;

thread_local uint64_t request_number = 0;
thread_local uint32_t request_opcode = 0;
thread_local uint32_t request_read_bytes = 0;
thread_local uint64_t offered_init_flags = 0;
thread_local uint64_t wanted_init_flags = 0;
thread_local bool request_drops_set_ids = false;
thread_local Buffer request_memory;  // borrowed, or a large request's

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

uint64_t InterruptedBy(std::span<const uint8_t> request) {
  fuse_interrupt_in interrupt{};
  if (request.size() < sizeof(fuse_in_header) + sizeof(interrupt)) return 0;
  std::memcpy(&interrupt, request.data() + sizeof(fuse_in_header), sizeof(interrupt));
  return interrupt.unique;
}

// libfuse asks for both; it is given what others have read.
ssize_t ReadRequest(int fd, void* buffer, size_t size, void* /*userdata*/) {
  return read(fd, buffer, size);
}

// libfuse sends a header and, unless it is an error, a fuse_init_out.
ssize_t WriteReply(int fd, iovec* parts, int count, void* userdata) {
  fuse_out_header header{};
  std::memcpy(&header, parts[0].iov_base, sizeof(header));
  RingRequests& rings = static_cast<Filesystem*>(userdata)->ring_requests();
  RingEntry* const entry = header.unique == 0 ? nullptr : rings.Take(header.unique);
  if (entry != nullptr) {
    entry->Answer({parts, static_cast<size_t>(count)});
    return header.len;
  }
  if (request_opcode == FUSE_INIT && count == 2) {
    AddInitFlags(offered_init_flags, wanted_init_flags,
                 {static_cast<uint8_t*>(parts[1].iov_base), parts[1].iov_len});
  }
  return writev(fd, parts, count);
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

// Whoever keeps a part keeps the memory of a largest request.
Buffer RequestData(std::span<const uint8_t> data) {
  if (request_memory.borrowed() || data.size() < kKeptLeast) {
    return Buffer::Borrowed(data);
  }
  return request_memory.Slice(static_cast<size_t>(data.data() - request_memory.data()),
                              data.size());
}

void RequestHandler::Handle(const Buffer& request) {
  const fuse_in_header header = HeaderOf(request.span());
  hooks_.on_request();
  if (header.opcode == FUSE_NOTIFY_REPLY) return hooks_.on_mark(header.unique);
  if (header.opcode == FUSE_INTERRUPT) return hooks_.on_interrupt(InterruptedBy(request.span()));
  MakeFamiliar({request.data(), request.size()});
  GiveToLibfuse(request);
}

void RequestHandler::GiveToLibfuse(const Buffer& memory) {
  const std::span<const uint8_t> request = memory.span();
  const fuse_in_header header = HeaderOf(request);
  request_number = header.unique;
  request_opcode = header.opcode;
  request_read_bytes = ReadBytesOf(header, request);
  if (header.opcode == FUSE_INIT) {
    offered_init_flags = OfferedInitFlags(request);
    wanted_init_flags = kYoungerInitFlags | more_init_flags_;
  }
  request_drops_set_ids = DropsSetIds(header, request);
  request_memory = memory;
  fuse_buf buffer{};
  buffer.mem = memory.data();
  buffer.size = memory.size();
  fuse_session_process_buf(session_, &buffer);
  request_memory = {};
  if (header.opcode == FUSE_INIT) hooks_.on_init(request);
}

}  // namespace weir::client
