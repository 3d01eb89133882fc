// Txn: the reads and writes of one operation while it is prepared. Writes stay here until the
// operation has decided everything; an operation that fails leaves nothing behind.
//
// With Reads::kMemory nothing waits for the disk: a read that would have to fails with kAgain and
// is noted. Whatever the operation makes of that, it counts for nothing and is prepared again when
// `missing` has been loaded.
//
// Threads: lives under the NamespaceDb lock.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mds/format/ns_keys_format.h"
#include "mds/format/ns_values_format.h"
#include "mds/ns/overlay.h"

namespace weir::mds {

class Txn {
 public:
  enum class Reads { kMemory, kDisk };
  // `session`: whose; 0: the MDS's own.
  explicit Txn(Overlay& overlay, Reads reads = Reads::kDisk, uint64_t session = 0)
      : overlay_(overlay), to_load_(reads == Reads::kMemory ? &missing_ : nullptr) {
    seen_.reader = session;
  }
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;

  Result<Overlay::Value> Get(const std::string& key) {
    if (const auto unseen = contents_.find(key); unseen != contents_.end()) {
      SeeAsWell(unseen->second);
    }
    if (const auto own = writes_.find(key); own != writes_.end()) return own->second.value;
    return overlay_.Get(key, &seen_, to_load_);
  }
  // Notes all of these at once that are missing: else each would be found, and loaded, by itself.
  Status Fetch(const std::vector<std::string>& keys) {
    Status status;
    for (const std::string& key : keys) {
      Status one = Get(key).status();
      if (!one.ok()) status = std::move(one);
    }
    return status;
  }
  // None when there is no such key.
  template <typename Record>
  Result<std::optional<Record>> GetRecord(const std::string& key) {
    return Decode<Record>(Get(key));
  }
  // The same of what no answer shows, as a counter: nothing waits for who changed it last.
  template <typename Record>
  Result<std::optional<Record>> GetCounter(const std::string& key) {
    return Decode<Record>(GetUnshown(key));
  }
  Result<Overlay::Value> GetUnshown(const std::string& key) {
    const Overlay::Seen seen = seen_;
    Result<Overlay::Value> value = Get(key);
    seen_ = seen;
    return value;
  }
  // The same of a directory of which nothing is used that its contents move. Nothing waits for who
  // moved that last, but after Get or SeeAllContents.
  template <typename Record>
  Result<std::optional<Record>> GetSteady(const std::string& key) {
    if (const auto own = writes_.find(key); own != writes_.end()) {
      return Decode<Record>(own->second.value);
    }
    Overlay::Seen& contents = contents_[key];
    contents.reader = seen_.reader;
    return Decode<Record>(overlay_.Get(key, &seen_, to_load_, &contents));
  }
  void SeeAllContents() {
    for (const auto& [key, unseen] : contents_) SeeAsWell(unseen);
  }
  // Its contents are used after all; false, and they may not be, if others have moved them and that
  // is not durable.
  [[nodiscard]] bool SeeOwnContents(const std::string& key) {
    const auto unseen = contents_.find(key);
    if (unseen == contents_.end()) return true;
    if (unseen->second.others != 0) return false;
    SeeAsWell(unseen->second);
    return true;
  }
  // What was there before this operation: its own writes are not seen.
  Status Scan(const std::string& begin, const std::string& end, const Overlay::Visit& visit) {
    return overlay_.Scan(begin, end, &seen_, visit, to_load_);
  }
  struct Write {
    Overlay::Value value;
    Overlay::Change change = Overlay::Change::kAny;
  };
  void Put(const std::string& key, std::string value) { writes_[key] = {std::move(value)}; }
  template <typename Record>
  void PutRecord(const std::string& key, const Record& record) {
    Put(key, EncodeValue(record));
  }
  // Of a directory, of which only what its contents move has changed since it was read here.
  template <typename Record>
  void PutContents(const std::string& key, const Record& record) {
    const auto [write, first] = writes_.try_emplace(key);
    write->second.value = EncodeValue(record);
    if (first) write->second.change = Overlay::Change::kContents;
  }
  void Delete(const std::string& key) { writes_[key] = {}; }

  [[nodiscard]] std::map<std::string, Write>& writes() { return writes_; }
  [[nodiscard]] const Overlay::Seen& seen() const { return seen_; }
  // From here on; not once something is missing.
  void ReadFromDisk() { to_load_ = nullptr; }
  [[nodiscard]] std::vector<Overlay::Missing>& missing() { return missing_; }

 private:
  void SeeAsWell(const Overlay::Seen& more) {
    seen_.any = std::max(seen_.any, more.any);
    seen_.others = std::max(seen_.others, more.others);
  }
  template <typename Record>
  static Result<std::optional<Record>> Decode(Result<Overlay::Value> value) {
    WEIR_RETURN_IF_ERROR(value.status());
    if (!value->has_value()) return std::optional<Record>();
    WEIR_ASSIGN_OR_RETURN(Record record, DecodeValue<Record>(**value));
    return std::optional<Record>(std::move(record));
  }

  Overlay& overlay_;
  std::map<std::string, Write> writes_;
  Overlay::Seen seen_;
  std::map<std::string, Overlay::Seen> contents_;  // of what GetSteady read
  std::vector<Overlay::Missing> missing_;
  std::vector<Overlay::Missing>* to_load_;  // missing_, or null: reads wait for the disk
};

}  // namespace weir::mds
