// Traces of real workloads, for people who have them.
//
//   spc   the format of the Storage Performance Council (the UMass traces): one request a line,
//         `ASU,LBA,size,opcode,timestamp`: LBA in blocks of 512 bytes, size in bytes, r/R or w/W,
//         seconds from the start; further fields are ignored
//   msr   the CSV of the MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,
//         ResponseTime`: units of 100 ns, Read or Write, bytes; put in order of time, which those
//         files are not quite. The unit is the disk's number
//   fio   what `fio --write_iolog` writes: `fio version 2 iolog` (waits in us as lines of their
//   own,
//         without them all at once) or `version 3` (each line begins with a time in ms); open,
//         close, add, sync and trim lines are skipped
//
// Errors: kInvalid names file and line, kNotFound the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "tools/sim/engine/load.h"

namespace weir::sim {

struct TraceRecord {
  double at_s = 0;    // from the start
  uint32_t unit = 0;  // ASU of spc; number of the file in fio's order of appearance
  uint64_t lba = 0;   // bytes
  uint64_t bytes = 0;
  osd::qos::OpKind op = osd::qos::OpKind::kRead;
};

using Trace = std::vector<TraceRecord>;

Result<Trace> ParseSpc(std::string_view text, const std::string& name);
Result<Trace> ParseMsr(std::string_view text, const std::string& name);
Result<Trace> ParseFioIolog(std::string_view text, const std::string& name);
std::vector<std::string_view> TraceFormats();
Result<Trace> ReadTrace(const std::string& path, const std::string& format);
// The same requests as spc text.
std::string ToSpc(const Trace& trace);

// Plays the trace as an open loop, `speed` times as fast (2: in half the time). Fills gap and
// shape.
void PlayTrace(Trace trace, double speed, LoadOptions* options);

}  // namespace weir::sim
