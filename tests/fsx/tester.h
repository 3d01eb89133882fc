// Tester: one file, seen through several mounts, and the bytes that it must have.
//
// Every operation is done to the file and to the model; whatever the file answers is compared.
// Mounts keep their descriptors while others change the file: several are as one machine, but for
// the size by which a kernel maps and copies, which it learns by a look (stat) at the file.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::fsx {

struct Options {
  std::vector<std::string> paths;  // of the same file
  uint64_t seed = 1;
  uint64_t most_bytes = 3 << 20;  // of the file
  uint64_t most_io = 200 << 10;
  bool direct = true;  // O_DIRECT too
};

struct Difference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Tester {
 public:
  explicit Tester(Options options);
  ~Tester();
  Tester(const Tester&) = delete;
  Tester& operator=(const Tester&) = delete;

  // Throws Difference.
  void Step();
  void CheckAll();
  [[nodiscard]] std::string Log() const;  // the last operations

 private:
  struct Mount {
    std::string path;
    int fd = -1;
    int direct_fd = -1;
    int append_fd = -1;
  };
  using Bytes = std::vector<uint8_t>;

  Mount& Pick();
  void Open(Mount& mount);
  static void Close(Mount& mount);
  uint64_t Random(uint64_t low, uint64_t high);
  Bytes RandomBytes(uint64_t size);
  void Note(const std::string& text);
  void Compare(const uint8_t* got, uint64_t offset, uint64_t size, const char* how) const;
  void Put(uint64_t offset, const Bytes& bytes);
  void CheckSize(const Mount& mount) const;
  // A range that begins in or near the file.
  uint64_t SomeOffset() { return Random(0, model_.size()); }
  uint64_t SomeLength(uint64_t offset);

  void Write(Mount& mount);
  void WriteDirect(Mount& mount);
  void Append(Mount& mount);
  void Read(Mount& mount);
  void ReadDirect(Mount& mount);
  void Truncate(Mount& mount);
  void MapRead(Mount& mount);
  void MapWrite(Mount& mount, bool shared);
  void Punch(Mount& mount);
  void Zero(Mount& mount);
  void Allocate(Mount& mount);
  void CopyRange(Mount& mount);
  void Seek(Mount& mount);
  void Sync(Mount& mount);

  const Options options_;
  std::mt19937_64 random_;
  std::vector<Mount> mounts_;
  size_t current_ = 0;
  Bytes model_;
  uint64_t steps_ = 0;
  std::deque<std::string> log_;
};

}  // namespace weir::fsx
