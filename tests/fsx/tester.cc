#include "tests/fsx/tester.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::fsx {
namespace {

constexpr size_t kLogged = 40;
constexpr uint64_t kCheckAllEvery = 50;

}  // namespace

Tester::Tester(Options options) : options_(std::move(options)), random_(options_.seed) {
  for (const std::string& path : options_.paths) {
    mounts_.push_back({path});
    Open(mounts_.back());
  }
}

Tester::~Tester() {
  for (Mount& mount : mounts_) Close(mount);
}

void Tester::Open(Mount& mount) {
  const auto open_as = [&mount](int flags) {
    return open(mount.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644);
  };
  mount.fd = open_as(0);
  mount.append_fd = open_as(O_APPEND);
  if (mount.fd < 0 || mount.append_fd < 0) {
    throw Difference("open " + mount.path + ": " + std::strerror(errno));
  }
  if (options_.direct) mount.direct_fd = open_as(O_DIRECT);  // not every filesystem has it
}

void Tester::Close(Mount& mount) {
  for (int* fd : {&mount.fd, &mount.direct_fd, &mount.append_fd}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

Tester::Mount& Tester::Pick() {
  const size_t last = current_;
  current_ = Random(0, mounts_.size() - 1);
  Mount& mount = mounts_[current_];
  const bool anew = mount.fd >= 0 && Random(0, 30) == 0;
  if (anew) {
    Note("close and open");
    Close(mount);
  }
  if (mount.fd < 0) Open(mount);
  // A kernel that nobody asks for the size maps and copies by the one it knew.
  if (current_ != last) CheckSize(mount);
  return mount;
}

uint64_t Tester::Random(uint64_t low, uint64_t high) {
  return low + random_() % (high - low + 1);
}

Tester::Bytes Tester::RandomBytes(uint64_t size) {
  Bytes bytes(size);
  for (uint64_t i = 0; i < size; i += sizeof(uint64_t)) {
    const uint64_t word = random_();
    std::memcpy(bytes.data() + i, &word, std::min<uint64_t>(sizeof(word), size - i));
  }
  return bytes;
}

void Tester::Note(const std::string& text) {
  log_.push_back(std::to_string(steps_) + ": " + text);
  if (log_.size() > kLogged) log_.pop_front();
}

std::string Tester::Log() const {
  std::string text;
  for (const std::string& line : log_) text += line + "\n";
  return text;
}

void Tester::Compare(const uint8_t* got, uint64_t offset, uint64_t size, const char* how) const {
  if (size == 0 || std::memcmp(got, model_.data() + offset, size) == 0) return;
  uint64_t first = 0;
  while (got[first] == model_[offset + first]) ++first;
  uint64_t last = size - 1;
  while (got[last] == model_[offset + last]) --last;
  throw Difference(std::string(how) + ": bytes " + std::to_string(offset + first) + " to " +
                   std::to_string(offset + last) + " differ, the first is " +
                   std::to_string(got[first]) + " and must be " +
                   std::to_string(model_[offset + first]));
}

void Tester::Put(uint64_t offset, const Bytes& bytes) {
  if (model_.size() < offset + bytes.size()) model_.resize(offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), model_.begin() + static_cast<ptrdiff_t>(offset));
}

void Tester::CheckSize(const Mount& mount) const {
  struct stat st {};
  if (fstat(mount.fd, &st) != 0) throw Difference(std::string("fstat: ") + std::strerror(errno));
  if (static_cast<uint64_t>(st.st_size) == model_.size()) return;
  throw Difference("the size is " + std::to_string(st.st_size) + ", not " +
                   std::to_string(model_.size()));
}

void Tester::CheckAll() {
  Mount& mount = Pick();
  Note("check all");
  CheckSize(mount);
  Bytes bytes(model_.size() + 1);
  uint64_t have = 0;
  for (ssize_t got = 1; got > 0; have += static_cast<uint64_t>(got)) {
    got = pread(mount.fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0) throw Difference(std::string("read: ") + std::strerror(errno));
  }
  if (have != model_.size()) throw Difference("the file has more or fewer bytes than its size");
  Compare(bytes.data(), 0, have, "check");
}

void Tester::Step() {
  ++steps_;
  Mount& mount = Pick();
  struct Choice {
    uint64_t weight;
    void (Tester::*run)(Mount&);
  };
  static constexpr Choice kChoices[] = {
      {20, &Tester::Write},      {20, &Tester::Read},     {6, &Tester::Append},
      {8, &Tester::Truncate},    {10, &Tester::MapRead},  {10, nullptr},
      {6, &Tester::Punch},       {6, &Tester::Zero},      {4, &Tester::Allocate},
      {8, &Tester::CopyRange},   {6, &Tester::Seek},      {4, &Tester::Sync},
      {6, &Tester::WriteDirect}, {6, &Tester::ReadDirect}};
  uint64_t total = 0;
  for (const Choice& choice : kChoices) total += choice.weight;
  uint64_t pick = Random(0, total - 1);
  for (const Choice& choice : kChoices) {
    if (pick >= choice.weight) {
      pick -= choice.weight;
      continue;
    }
    if (choice.run == nullptr) {
      MapWrite(mount, Random(0, 3) != 0);
    } else {
      (this->*choice.run)(mount);
    }
    break;
  }
  CheckSize(mount);
  if (steps_ % kCheckAllEvery == 0) CheckAll();
}

}  // namespace weir::fsx
