// A mount's ObjectIo over OSDs that answer when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/remote/object_io.h"
#include "common/base/crc32c.h"
#include "common/testing/manual_clock.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {

class ObjectIoFixture : public ::testing::Test {
 protected:
  void Start(ObjectIo::Options options = {}, uint32_t osds = 1) {
    io_ = std::make_unique<ObjectIo>(clock_, osds_, options);
    io_->SetMap(MapOf(osds));
  }
  // Notes how it ends under `name`.
  void Submit(const std::string& name, ObjectOp op) {
    op.done = [this, name](const Result<ObjectOutcome>& result) {
      ends_.emplace_back(name, result.code());
    };
    io_->Submit(std::move(op));
  }
  static ObjectOp ReadOp(uint32_t class_id, uint64_t bytes, uint64_t index = 0) {
    ObjectOp op;
    op.class_id = ClassId(class_id);
    op.pool = PoolId(1);
    op.object = {InodeId(7), index};
    op.length = bytes;
    return op;
  }
  void Read(const std::string& name, uint32_t class_id, uint64_t bytes, uint64_t index = 0) {
    Submit(name, ReadOp(class_id, bytes, index));
  }

  // A write of class 16 without anybody who hears of its end.
  static ObjectOp WriteOp(uint64_t index, uint64_t bytes) {
    ObjectOp op = ReadOp(16, bytes, index);
    op.write = true;
    op.payload = Buffer::AlignedZeros(bytes);
    op.payload_crc = Crc32c(op.payload.data(), bytes);
    return op;
  }
  void Write(const std::string& name, uint64_t index, uint64_t bytes = 4096,
             bool background = false) {
    ObjectOp op = WriteOp(index, bytes);
    op.background = background;
    Submit(name, std::move(op));
  }
  [[nodiscard]] const ObjectSender::Stamp& Stamp(size_t flight) const {
    return osds_.flights.at(flight).stamp;
  }
  static Chain ChainOf(uint64_t version, const std::vector<uint32_t>& osds) {
    Chain chain{version, {}};
    for (const uint32_t osd : osds) {
      chain.members.push_back({OsdId(osd), 0, replication::MemberState::kServing});
    }
    return chain;
  }

  testing::ManualClock clock_;
  FakeOsds osds_;
  std::unique_ptr<ObjectIo> io_;
  std::vector<std::pair<std::string, ErrorCode>> ends_;
};

}  // namespace weir::client
