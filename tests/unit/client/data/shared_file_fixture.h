// A file that other mounts may share, and the FileIo of a mount that has it open, over OSDs and an
// MDS that answer when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/data/file_io.h"
#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {

constexpr uint64_t kSharedUnit = 1 << 20;
constexpr InodeId kSharedFile{5};

class HeldReports final : public WriteReporter {
 public:
  // The last that was held.
  void Answer() { std::exchange(held, nullptr)(); }

  [[nodiscard]] uint64_t map_epoch() const override {
    const uint64_t told = epoch;
    if (then) then();
    return told;
  }
  void ReportWrote(InodeId /*inode*/, const Inode::Report& report, bool /*commit*/,
                   std::function<void(Result<FileAttr>)> callback) override {
    epochs.push_back(report.epoch);
    sizes.push_back(report.size_at_least);
    modes.push_back(report.held.mode.value_or(0));
    held = [this, report, callback = std::move(callback)] {
      if (refusal.has_value()) return callback(Status(*refusal));
      FileAttr attr;
      attr.inode = kSharedFile;
      attr.version = ++version;
      attr.size = report.size_at_least;
      attr.layout = LayoutOf(kSharedUnit, 1, 4 * kSharedUnit);
      callback(attr);
    };
  }
  void AskAttributes(InodeId /*inode*/, WriteCallback callback) override { callback(Status::Ok()); }
  [[nodiscard]] uint64_t last_order() const override { return 0; }
  void Commit(uint64_t /*order*/, InodeId /*inode*/, WriteCallback callback) override {
    callback(Status::Ok());
  }
  void ReportAllocated(InodeId, const AllocatedReport&, const Allocation&,
                       WriteCallback callback) override {
    callback(Status::Ok());
  }
  void AskRoom(InodeId /*inode*/, ClassId /*class_id*/, uint64_t end,
               std::function<void(Result<uint64_t>)> callback) override {
    callback(end);
  }
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> modes;   // told with them
  std::vector<uint64_t> epochs;  // as well
  uint64_t epoch = 1;
  std::function<void()> then;  // between that and what is made of it
  std::function<void()> held;
  std::optional<ErrorCode> refusal;
  uint64_t version = 1;
};

class SharedFileFixture : public ::testing::Test {
 protected:
  // How something ended, once it has.
  using Ended = std::shared_ptr<std::optional<ErrorCode>>;

  void SetUp() override {
    const auto map = MapOf(1);
    classes_.SetMap(map);
    objects_.SetMap(map);
    leases_.BeginSession(1, clock_.Now());
    FileAttr attr;
    attr.inode = kSharedFile;
    attr.version = 1;
    attr.mode = S_IFREG | 0644;
    attr.layout = LayoutOf(kSharedUnit, 1, 4 * kSharedUnit);
    inode_ = inodes_.Lookup(kSharedFile);
    inode_->Update(attr);
    handle_ = Open();
  }
  HandlePtr Open(int flags = O_RDWR) {
    return std::make_shared<Handle>(inode_, classes_.Open(1, 1, {}, 0), flags);
  }
  void Lease(bool unseen = false) {
    wire::EntryReply reply;
    reply.mutable_file_lease()->set_epoch(1);
    reply.mutable_file_lease()->set_write(true);
    reply.mutable_file_lease()->set_unseen(unseen);
    leases_.Learn(inode_, reply, leases_.Asked());
  }
  // 100 bytes.
  static Ended WriteBy(FileIo& files, const HandlePtr& handle, uint64_t offset) {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    const std::vector<uint8_t> data(100, 'x');
    handle->Changing(1);
    files.Write(handle, offset, Buffer::Borrowed(data), {},
                [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }
  Ended Write(const HandlePtr& handle, uint64_t offset) { return WriteBy(files_, handle, offset); }
  Ended Fsync(const HandlePtr& handle) {
    auto ended = std::make_shared<std::optional<ErrorCode>>();
    files_.Fsync(handle, false, [ended](const Status& status) { *ended = status.code(); });
    return ended;
  }
  // For what ends at once.
  ErrorCode Sync() { return Fsync(handle_)->value_or(ErrorCode::kTimedOut); }

  testing::ManualClock clock_;
  FakeOsds osds_;
  ObjectIo objects_{clock_, osds_, {}};
  InodeTable inodes_;
  CallerClasses classes_{{"mount", ""},
                         [](pid_t, uid_t) { return std::string(); },
                         [](pid_t, uid_t) { return std::string(); }};
  FileLeases leases_{clock_, false};
  HeldReports reporter_;
  FileIo files_{clock_, objects_, inodes_, classes_, leases_, reporter_, {}};
  InodePtr inode_;
  HandlePtr handle_;
};

}  // namespace weir::client
