// A flash disk: pages over channels, a write buffer before them.
//
//   a request is cut into pages; page i goes to channel i mod n and waits its turn there
//   reads cost read_s a page, writes program_s, and `overhead_s` for each request; the first page
//   of a request costs `request_s` more, which bounds small requests (iops) apart from bytes
//   a write is done when the buffer has taken it (bus speed); pages are programmed behind it, and
//   when the buffer is full a write waits for room
//   read_first  reads pass the programs that wait on their channel and suspend the one at work, at
//               the price of suspend_s; what they take, the programs take longer
//   flush       done when what was written is programmed; with `protected_buffer` (a capacitor that
//               saves the buffer) after overhead_s
#pragma once

#include "common/disk/model/disk_model.h"
#include "common/disk/model/event_queue.h"

namespace weir::model {

struct SsdModel {
  int channels = 8;
  uint64_t page = 4096;
  double read_s = 60e-6;
  double program_s = 200e-6;
  double overhead_s = 10e-6;
  double request_s = 0;
  double bus_bytes_per_s = 2e9;
  uint64_t buffer = 4ull << 20;
  bool read_first = false;
  double suspend_s = 20e-6;
  bool protected_buffer = false;
};

// ssd-200: 200 MB/s read and written, reads first, protected buffer; what `--disk ssd:` emulates.
SsdModel Ssd200();
// The pages' times such that all channels together move so much.
void SetReadRate(SsdModel* model, double bytes_per_s);
void SetWriteRate(SsdModel* model, double bytes_per_s);
// So many pages at a time, at the same rates; with 1 every request waits for those before it.
void SetChannels(SsdModel* model, int channels);
// request_s such that so many one-page reads pass in a second, if the read rate allows as many.
void SetIops(SsdModel* model, double iops);

// The queue outlives it.
std::unique_ptr<DiskModel> MakeSsd(EventQueue* events, const SsdModel& model);

}  // namespace weir::model
