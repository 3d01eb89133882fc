#include "common/disk/aio_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/check.h"
#include "common/base/short_turns.h"

namespace weir {
namespace {

constexpr unsigned kUnderWay = 512;
constexpr long kReapedAtOnce = 32;

// glibc has no wrappers.
bool Submit(aio_context_t context, iocb* block) {
  return syscall(SYS_io_submit, context, 1, &block) == 1;
}

}  // namespace

std::unique_ptr<AioReader> AioReader::Start(Answer answer) {
  aio_context_t context = 0;
  const int ready = eventfd(1, EFD_CLOEXEC);
  if (ready < 0) return nullptr;
  if (syscall(SYS_io_setup, kUnderWay, &context) != 0) {
    close(ready);
    return nullptr;
  }
  std::unique_ptr<AioReader> reader(new AioReader(context, ready, std::move(answer)));
  reader->thread_ = std::thread([raw = reader.get()] { raw->Reap(); });
  return reader;
}

AioReader::~AioReader() {
  iocb end{};  // its event names no request
  end.aio_lio_opcode = IOCB_CMD_POLL;
  end.aio_fildes = static_cast<uint32_t>(ready_);
  end.aio_buf = POLLIN;
  WEIR_CHECK(Submit(context_, &end), "the AIO context takes one more");
  thread_.join();
  syscall(SYS_io_destroy, context_);
  close(ready_);
}

bool AioReader::Read(int fd, uint64_t offset, uint8_t* data, size_t length, void* request) {
  iocb block{};
  block.aio_data = reinterpret_cast<uint64_t>(request);
  block.aio_lio_opcode = IOCB_CMD_PREAD;
  block.aio_fildes = static_cast<uint32_t>(fd);
  block.aio_buf = reinterpret_cast<uint64_t>(data);
  block.aio_nbytes = length;
  block.aio_offset = static_cast<int64_t>(offset);
  return Submit(context_, &block);
}

void AioReader::Reap() {
  (void)RunAheadOfTurns();
  io_event events[kReapedAtOnce];
  for (;;) {
    const long count = syscall(SYS_io_getevents, context_, 1, kReapedAtOnce, events, nullptr);
    WEIR_CHECK(count >= 0 || errno == EINTR, "AIO answers as long as its context lives");
    bool end = false;
    for (long i = 0; i < count; ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel carries it as a number
      auto* request = reinterpret_cast<void*>(events[i].data);
      if (request == nullptr) {
        end = true;
      } else {
        answer_(request, events[i].res);
      }
    }
    if (end) return;
  }
}

}  // namespace weir
