#include "tools/sim/workloads/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "tools/sim/workloads/arrivals.h"

namespace weir::sim {
namespace {

using osd::qos::OpKind;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> Fields(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const size_t at = line.find(separator);
    const std::string_view field = Trim(line.substr(0, at));
    if (separator == ',' || !field.empty()) fields.push_back(field);
    if (at == std::string_view::npos) break;
    line.remove_prefix(at + 1);
  }
  return fields;
}

template <typename Number>
bool Parse(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Calls `take` with each line that is not blank, and its number; stops at the first error.
template <typename Take>
Status EachLine(std::string_view text, const std::string& name, Take take) {
  size_t number = 0;
  while (!text.empty()) {
    const size_t at = text.find('\n');
    const std::string_view line = Trim(text.substr(0, at));
    ++number;
    if (!line.empty()) {
      if (const std::string why = take(line, number); !why.empty()) {
        return {ErrorCode::kInvalid, fmt::format("{}:{}: {}", name, number, why)};
      }
    }
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return Status::Ok();
}

std::string TakeSpc(std::string_view line, Trace* trace) {
  constexpr char kExample[] = "as in 0,20941264,8192,W,0.551706";
  const std::vector<std::string_view> fields = Fields(line, ',');
  if (fields.size() < 5) {
    return fmt::format("{} fields where ASU,LBA,size,opcode,timestamp are needed ({})",
                       fields.size(), kExample);
  }
  TraceRecord record;
  if (!Parse(fields[0], &record.unit)) return fmt::format("ASU '{}' is no number", fields[0]);
  if (!Parse(fields[1], &record.lba)) return fmt::format("LBA '{}' is no number", fields[1]);
  if (!Parse(fields[2], &record.bytes)) return fmt::format("size '{}' is no number", fields[2]);
  if (fields[3] != "r" && fields[3] != "R" && fields[3] != "w" && fields[3] != "W") {
    return fmt::format("opcode '{}' is neither R nor W ({})", fields[3], kExample);
  }
  if (!Parse(fields[4], &record.at_s)) return fmt::format("time '{}' is no number", fields[4]);
  if (!trace->empty() && record.at_s < trace->back().at_s) {
    return fmt::format("time {} is before the line above ({})", record.at_s, trace->back().at_s);
  }
  record.lba *= 512;
  record.op = fields[3] == "r" || fields[3] == "R" ? OpKind::kRead : OpKind::kWrite;
  trace->push_back(record);
  return "";
}

// `ticks`: the moment of the first line.
std::string TakeMsr(std::string_view line, int64_t* ticks, Trace* trace) {
  constexpr char kExample[] = "as in 128166372003061629,usr,0,Read,7014609920,24576,41286";
  const std::vector<std::string_view> fields = Fields(line, ',');
  if (fields.size() < 6) {
    return fmt::format(
        "{} fields where Timestamp,Hostname,DiskNumber,Type,Offset,Size are needed ({})",
        fields.size(), kExample);
  }
  TraceRecord record;
  int64_t at = 0;
  if (!Parse(fields[0], &at)) return fmt::format("timestamp '{}' is no number", fields[0]);
  if (!Parse(fields[2], &record.unit)) return fmt::format("disk '{}' is no number", fields[2]);
  if (!Parse(fields[4], &record.lba)) return fmt::format("offset '{}' is no number", fields[4]);
  if (!Parse(fields[5], &record.bytes)) return fmt::format("size '{}' is no number", fields[5]);
  if (fields[3] != "Read" && fields[3] != "Write") {
    return fmt::format("type '{}' is neither Read nor Write ({})", fields[3], kExample);
  }
  if (trace->empty()) *ticks = at;
  record.at_s = static_cast<double>(at - *ticks) / 1e7;
  record.op = fields[3] == "Read" ? OpKind::kRead : OpKind::kWrite;
  trace->push_back(record);
  return "";
}

// State while fio's log is read.
struct FioReader {
  int version = 0;
  double now_s = 0;
  std::map<std::string, uint32_t, std::less<>> files;
  Trace trace;

  std::string Take(std::string_view line, size_t number) {
    if (number == 1) return TakeHeader(line);
    std::vector<std::string_view> fields = Fields(line, ' ');
    if (version == 3) {
      double ms = 0;
      if (!Parse(fields[0], &ms)) return fmt::format("time '{}' is no number", fields[0]);
      now_s = ms / 1000;
      fields.erase(fields.begin());
    }
    if (fields.size() < 2) return "a file name and an action are needed";
    const std::string_view action = fields[1];
    if (action == "wait") {
      double us = 0;
      if (fields.size() < 3 || !Parse(fields[2], &us)) return "wait needs a number of us";
      now_s += us / 1e6;
      return "";
    }
    if (action != "read" && action != "write") return "";  // open, close, sync ...
    return TakeRequest(fields);
  }

  std::string TakeHeader(std::string_view line) {
    if (line == "fio version 2 iolog") version = 2;
    if (line == "fio version 3 iolog") version = 3;
    return version == 0 ? "the first line must be 'fio version 2 iolog' or 'fio version 3 iolog'"
                        : "";
  }

  std::string TakeRequest(const std::vector<std::string_view>& fields) {
    TraceRecord record;
    if (fields.size() < 4 || !Parse(fields[2], &record.lba) || !Parse(fields[3], &record.bytes)) {
      return "read and write need an offset and a length";
    }
    record.at_s = now_s;
    record.op = fields[1] == "read" ? OpKind::kRead : OpKind::kWrite;
    record.unit = files.try_emplace(std::string(fields[0]), static_cast<uint32_t>(files.size()))
                      .first->second;
    trace.push_back(record);
    return "";
  }
};

}  // namespace

Result<Trace> ParseSpc(std::string_view text, const std::string& name) {
  Trace trace;
  WEIR_RETURN_IF_ERROR(
      EachLine(text, name, [&](std::string_view line, size_t) { return TakeSpc(line, &trace); }));
  return trace;
}

Result<Trace> ParseMsr(std::string_view text, const std::string& name) {
  Trace trace;
  int64_t ticks = 0;
  WEIR_RETURN_IF_ERROR(EachLine(
      text, name, [&](std::string_view line, size_t) { return TakeMsr(line, &ticks, &trace); }));
  const auto earlier = [](const TraceRecord& a, const TraceRecord& b) { return a.at_s < b.at_s; };
  std::stable_sort(trace.begin(), trace.end(), earlier);
  if (trace.empty()) return trace;
  const double first = trace.front().at_s;
  for (TraceRecord& record : trace) record.at_s -= first;
  return trace;
}

Result<Trace> ParseFioIolog(std::string_view text, const std::string& name) {
  FioReader reader;
  WEIR_RETURN_IF_ERROR(EachLine(
      text, name, [&](std::string_view line, size_t number) { return reader.Take(line, number); }));
  return std::move(reader.trace);
}

std::vector<std::string_view> TraceFormats() {
  return {"spc", "msr", "fio"};
}

Result<Trace> ReadTrace(const std::string& path, const std::string& format) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {ErrorCode::kNotFound, fmt::format("there is no trace file '{}'", path)};
  std::ostringstream text;
  text << file.rdbuf();
  if (format == "spc") return ParseSpc(text.str(), path);
  if (format == "msr") return ParseMsr(text.str(), path);
  if (format == "fio") return ParseFioIolog(text.str(), path);
  return {ErrorCode::kInvalid,
          fmt::format("trace format '{}' (there is: {})", format, fmt::join(TraceFormats(), ", "))};
}

std::string ToSpc(const Trace& trace) {
  std::string text;
  for (const TraceRecord& record : trace) {
    text += fmt::format("{},{},{},{},{:.6f}\n", record.unit, record.lba / 512, record.bytes,
                        record.op == OpKind::kRead ? 'R' : 'W', record.at_s);
  }
  return text;
}

void PlayTrace(Trace trace, double speed, LoadOptions* options) {
  std::vector<double> moments;
  moments.reserve(trace.size());
  for (const TraceRecord& record : trace) moments.push_back(record.at_s / speed);
  options->gap = AtMoments(std::move(moments));
  const auto records = std::make_shared<const Trace>(std::move(trace));
  options->shape = [records](Prng&, uint64_t n, Io* io) {
    const TraceRecord& record = (*records)[std::min<size_t>(n, records->size() - 1)];
    io->lba = record.lba;
    io->bytes = record.bytes;
    io->op = record.op;
  };
}

}  // namespace weir::sim
