#include "common/disk/disk_spec.h"

#include <algorithm>
#include <charconv>

#include "common/base/units.h"
#include "common/disk/emulated_device.h"
#include "common/reactor/reactor.h"

namespace weir {
namespace {

using model::HddModel;
using model::SsdModel;

constexpr std::string_view kHdd = "hdd:";
constexpr std::string_view kSsd = "ssd:";
constexpr std::string_view kDefaultHdd = "sata-7200";

Status Wrong(std::string_view option, const std::string& why) {
  return {ErrorCode::kInvalid, "disk option '" + std::string(option) + "': " + why};
}

struct Option {
  std::string_view whole, name, value;
};

Result<uint64_t> Number(const Option& option, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const char* end = option.value.data() + option.value.size();
  const auto [at, error] = std::from_chars(option.value.data(), end, value);
  if (error != std::errc() || at != end || value < low || value > high) {
    return Wrong(option.whole,
                 "wants a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

Result<double> Rate(const Option& option) {
  constexpr uint64_t kSlowest = 4096;
  constexpr uint64_t kFastest = 100'000'000'000;
  const Result<uint64_t> rate = ParseRate(option.value);
  if (!rate.ok()) return Wrong(option.whole, rate.status().message());
  if (*rate < kSlowest || *rate > kFastest) {
    return Wrong(option.whole, "wants a rate from 4KiB/s to 100GB/s");
  }
  return static_cast<double>(*rate);
}

Result<uint64_t> Bytes(const Option& option) {
  Result<uint64_t> size = ParseSize(option.value);
  if (!size.ok()) return Wrong(option.whole, size.status().message());
  return size;
}

Status Apply(const Option& option, HddModel* model) {
  if (option.name == "model") {
    const auto names = model::HddModelNames();
    if (std::find(names.begin(), names.end(), option.value) == names.end()) {
      std::string all;
      for (const std::string_view name : names) all += " " + std::string(name);
      return Wrong(option.whole, "there is no such model; there are" + all);
    }
    *model = model::HddModelOf(option.value);
  } else if (option.name == "rate") {
    WEIR_ASSIGN_OR_RETURN(model->bytes_per_s, Rate(option));
  } else if (option.name == "buffer") {
    WEIR_ASSIGN_OR_RETURN(model->write_cache, Bytes(option));
  } else if (option.name == "ncq") {
    constexpr uint64_t kMost = 256;
    WEIR_ASSIGN_OR_RETURN(const uint64_t ncq, Number(option, 1, kMost));
    model->ncq = static_cast<int>(ncq);
  } else {
    return Wrong(option.whole, "a hdd knows model, rate, buffer, ncq and flush");
  }
  return {};
}

// `wanted_iops` is applied last: what it takes depends on the rates.
Status Apply(const Option& option, SsdModel* model, double* wanted_iops) {
  if (option.name == "model") {
    if (option.value != "ssd-200") return Wrong(option.whole, "there is ssd-200 only");
    *model = model::Ssd200();
  } else if (option.name == "rate" || option.name == "read-rate" || option.name == "write-rate") {
    WEIR_ASSIGN_OR_RETURN(const double rate, Rate(option));
    if (option.name != "write-rate") model::SetReadRate(model, rate);
    if (option.name != "read-rate") model::SetWriteRate(model, rate);
  } else if (option.name == "iops") {
    constexpr uint64_t kMost = 10'000'000;
    WEIR_ASSIGN_OR_RETURN(const uint64_t iops, Number(option, 1, kMost));
    *wanted_iops = static_cast<double>(iops);
  } else if (option.name == "channels") {
    constexpr uint64_t kMost = 256;
    WEIR_ASSIGN_OR_RETURN(const uint64_t channels, Number(option, 1, kMost));
    model::SetChannels(model, static_cast<int>(channels));
  } else if (option.name == "buffer") {
    WEIR_ASSIGN_OR_RETURN(model->buffer, Bytes(option));
  } else {
    return Wrong(option.whole,
                 "an ssd knows model, rate, read-rate, write-rate, iops, channels, buffer and "
                 "flush");
  }
  return {};
}

Status ParseOptions(std::string_view list, DiskSpec* spec) {
  double iops = 0;
  bool first = true;
  while (!list.empty()) {
    list.remove_prefix(1);  // the comma
    const std::string_view whole = list.substr(0, list.find(','));
    list.remove_prefix(whole.size());
    const size_t equals = whole.find('=');
    if (equals == std::string_view::npos) return Wrong(whole, "wants NAME=VALUE");
    const Option option{whole, whole.substr(0, equals), whole.substr(equals + 1)};
    if (option.name == "model" && !first) return Wrong(whole, "comes first, as others change it");
    first = false;
    if (option.name == "flush") {
      if (option.value != "host" && option.value != "model") {
        return Wrong(whole, "wants host or model");
      }
      spec->flush_host = option.value == "host";
    } else if (auto* hdd = std::get_if<HddModel>(&spec->model)) {
      WEIR_RETURN_IF_ERROR(Apply(option, hdd));
    } else {
      WEIR_RETURN_IF_ERROR(Apply(option, &std::get<SsdModel>(spec->model), &iops));
    }
  }
  if (iops > 0) model::SetIops(&std::get<SsdModel>(spec->model), iops);
  return {};
}

// The comma before the options. Those of a path's directories are none: what follows them is not
// NAME=.
size_t OptionsAt(std::string_view rest) {
  const size_t first = rest.find(',');
  if (rest.substr(0, first).find('/') == std::string_view::npos) return first;
  for (size_t comma = first; comma != std::string_view::npos; comma = rest.find(',', comma + 1)) {
    const std::string_view option = rest.substr(comma + 1);
    const size_t name = option.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
    if (name != std::string_view::npos && name > 0 && option[name] == '=') return comma;
  }
  return std::string_view::npos;
}

bool IsEmulated(std::string_view text) {
  return text.starts_with(kHdd) || text.starts_with(kSsd);
}

}  // namespace

Result<DiskSpec> ParseDiskSpec(std::string_view text) {
  DiskSpec spec;
  if (!IsEmulated(text)) {
    spec.path = text;
    return spec;
  }
  if (text.starts_with(kHdd)) {
    spec.model = model::HddModelOf(kDefaultHdd);
  } else {
    spec.model = model::Ssd200();
  }
  const std::string_view rest = text.substr(kHdd.size());
  const std::string_view where = rest.substr(0, OptionsAt(rest));
  spec.options = rest.substr(where.size());
  if (where.empty()) {
    return Status(ErrorCode::kInvalid, "disk '" + std::string(text) +
                                           "': wants a size or the path of an image, as in "
                                           "hdd:20GiB or ssd:/srv/osd.img");
  }
  const bool number = where.front() >= '0' && where.front() <= '9';
  if (number && where.find('/') == std::string_view::npos) {
    WEIR_ASSIGN_OR_RETURN(spec.image_size, ParseSize(where));
  } else {
    spec.path = where;
  }
  WEIR_RETURN_IF_ERROR(ParseOptions(spec.options, &spec));
  return spec;
}

std::string WithPath(std::string_view spec, std::string_view path) {
  if (!IsEmulated(spec)) return std::string(path);
  const std::string_view rest = spec.substr(kHdd.size());
  const size_t comma = OptionsAt(rest);
  return std::string(spec.substr(0, kHdd.size())) + std::string(path) +
         std::string(comma == std::string_view::npos ? "" : rest.substr(comma));
}

Result<std::unique_ptr<BlockDevice>> OpenDisk(const std::string& text, Reactor* reactor) {
  WEIR_ASSIGN_OR_RETURN(const DiskSpec spec, ParseDiskSpec(text));
  if (spec.path.empty()) {
    return Status(ErrorCode::kInvalid, "disk '" + text + "': names no image (PATH for a SIZE)");
  }
  if (!spec.emulated()) return OpenDevice(spec.path, {.reactor = reactor});
  // Through the page cache: the time is the model's, and memory is the fastest image.
  WEIR_ASSIGN_OR_RETURN(auto image, OpenDevice(spec.path, {.direct = false, .reactor = reactor}));
  EmulatedDevice::Options options;
  options.flush_host = spec.flush_host;
  options.loop = reactor;
  options.name = text.substr(0, kHdd.size()) + spec.path;
  options.rotational = std::holds_alternative<HddModel>(spec.model);
  auto make = [model = spec.model, size = image->size()](model::EventQueue* events) {
    if (const auto* hdd = std::get_if<HddModel>(&model)) {
      HddModel whole = *hdd;
      whole.capacity = size;  // the image is the whole stroke
      return model::MakeHdd(events, whole, 1, size, Prng(size));
    }
    return model::MakeSsd(events, std::get<SsdModel>(model));
  };
  return EmulatedDevice::Start(std::move(image), make, SystemClock::Get(), std::move(options));
}

}  // namespace weir
