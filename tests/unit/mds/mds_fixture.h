// MdsFixture: a whole MdsCore in one thread: a store of which nothing is in memory before it has
// been loaded, manual clock, OSDs that only write down what they are told. `Ask` sends a request
// and commits until it is answered.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/kv/mem_kv_store.h"
#include "common/testing/cold_kv_store.h"
#include "common/testing/manual_clock.h"
#include "common/wire/mds.pb.h"
#include "mds/service/mds_core.h"

namespace weir::mds {

struct Answer {
  Status status;
  std::string body;
};

class TestCall final : public net::IncomingCall {
 public:
  TestCall(uint32_t method, uint64_t session, uint64_t id, std::string body) {
    method_ = method;
    sub_session_ = session;
    request_id_ = id;
    body_ = std::move(body);
  }
  void AckedBelow(uint64_t id) { acked_below_ = id; }
  using net::IncomingCall::Respond;
  void Respond(Status status, std::string body, Buffer) override {
    EXPECT_FALSE(answer.has_value()) << "answered twice";
    answer = Answer{std::move(status), std::move(body)};
  }
  std::optional<Answer> answer;
};

class RecordingOsds final : public OsdPort {
 public:
  void Send(const ClusterMap& /*map*/, const ObjectOrder& order,
            std::function<void(OrderEnd)> done) override {
    orders.push_back(order);
    const bool some_left = order.kind == ObjectOrder::Kind::kDeleteInode && !left.empty();
    if (some_left) {
      const uint64_t next_index = left.front();
      left.erase(left.begin());
      done({Status::Ok(), next_index, NextFreed()});
      return;
    }
    if (hold) {
      held.push_back(std::move(done));
    } else {
      done(End());
    }
  }
  void Release() {
    auto waiting = std::exchange(held, {});
    for (const auto& done : waiting) done(End());
  }
  std::vector<ObjectOrder> orders;
  std::vector<std::function<void(OrderEnd)>> held;
  Status answer;
  std::vector<uint64_t> left;   // what the next deletes answer as left
  std::vector<uint64_t> frees;  // what the next that succeed answer as freed
  bool hold = false;

 private:
  OrderEnd End() {
    OrderEnd end(answer);
    if (answer.ok()) end.freed_bytes = NextFreed();
    return end;
  }
  uint64_t NextFreed() {
    if (frees.empty()) return 0;
    const uint64_t freed = frees.front();
    frees.erase(frees.begin());
    return freed;
  }
};

class MdsFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kRoot = 1;

  void SetUp() override {
    LogOptions quiet;
    quiet.level = LogLevel::kOff;
    ASSERT_TRUE(InitLogging(quiet).ok());
    Start();
    AddOsd("disk-a", 100 << 20);
  }

  void Start() {
    MdsOptions options;
    options.background = false;
    options.ns.commit_thread = false;
    options.ns.loader_threads = 0;
    options.ns.on_missing = on_missing;
    options.ns.cached_keys = cached_keys;
    auto opened = MdsCore::Open(Store(), clock, osds, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    core = *std::move(opened);
  }
  // The process ends without a word; what was prepared and not committed is lost.
  void Restart() {
    core.reset();
    cold.Forget();
    Start();
  }
  virtual KvStore& Store() { return cold; }

  uint32_t AddOsd(const std::string& uuid, uint64_t token_rate, uint64_t life = 0) {
    wire::RegisterOsdRequest request;
    request.set_life(life);
    request.set_osd_uuid(uuid);
    request.set_endpoint("inproc://" + uuid);
    request.set_capacity_bytes(uint64_t{1} << 30);
    request.set_token_rate(token_rate);
    return Ask<wire::RegisterOsdReply>(wire::MDS_REGISTER_OSD, request).osd_id();
  }

  std::shared_ptr<TestCall> Send(uint32_t method, const google::protobuf::Message& request,
                                 uint64_t id = 0) {
    auto call = std::make_shared<TestCall>(method, session, id == 0 ? ++last_id : id,
                                           request.SerializeAsString());
    core->Handle(call);
    return call;
  }
  Answer Finish(const std::shared_ptr<TestCall>& call) {
    while (!call->answer.has_value() && core->names().CommitPrepared()) {
    }
    if (!call->answer.has_value()) return {Status(ErrorCode::kTimedOut, "no answer"), {}};
    return *call->answer;
  }
  Answer Try(uint32_t method, const google::protobuf::Message& request, uint64_t id = 0) {
    return Finish(Send(method, request, id));
  }
  template <typename Reply>
  Reply Ask(uint32_t method, const google::protobuf::Message& request) {
    const Answer answer = Try(method, request);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    Reply reply;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply;
  }
  ErrorCode Code(uint32_t method, const google::protobuf::Message& request) {
    return Try(method, request).status.code();
  }

  wire::Caller Caller() const {
    wire::Caller caller;
    caller.set_uid(uid);
    caller.set_gid(gid);
    for (const uint32_t group : groups) caller.add_groups(group);
    return caller;
  }
  wire::NameRequest Name(uint64_t parent, const std::string& name) const {
    wire::NameRequest request;
    *request.mutable_caller() = Caller();
    request.set_parent(parent);
    request.set_name(name);
    return request;
  }
  wire::CreateRequest New(uint64_t parent, const std::string& name, uint32_t mode) const {
    wire::CreateRequest request;
    *request.mutable_caller() = Caller();
    request.set_parent(parent);
    request.set_name(name);
    request.set_mode(mode);
    return request;
  }
  wire::RenameRequest Move(uint64_t from, const std::string& old_name, uint64_t to,
                           const std::string& new_name, uint32_t flags = 0) const {
    wire::RenameRequest request;
    *request.mutable_caller() = Caller();
    request.set_old_parent(from);
    request.set_old_name(old_name);
    request.set_new_parent(to);
    request.set_new_name(new_name);
    request.set_flags(flags);
    return request;
  }
  wire::LinkRequest NewLink(uint64_t inode, uint64_t parent, const std::string& name) const {
    wire::LinkRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    request.set_new_parent(parent);
    request.set_new_name(name);
    return request;
  }
  wire::SetAttrRequest Change(uint64_t inode) const {
    wire::SetAttrRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    return request;
  }
  wire::XattrRequest Xattr(uint64_t inode, const std::string& name,
                           const std::string& value = {}) const {
    wire::XattrRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    request.set_name(name);
    request.set_value(value);
    return request;
  }
  wire::InodeRequest At(uint64_t inode) const {
    wire::InodeRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(inode);
    return request;
  }

  uint64_t Mkdir(uint64_t parent, const std::string& name, uint32_t mode = 0755) {
    return Ask<wire::EntryReply>(wire::MDS_MKNOD, New(parent, name, S_IFDIR | mode)).attr().inode();
  }
  // Not open.
  uint64_t Touch(uint64_t parent, const std::string& name, uint32_t mode = 0644) {
    return Ask<wire::EntryReply>(wire::MDS_MKNOD, New(parent, name, S_IFREG | mode)).attr().inode();
  }
  uint64_t CreateOpen(uint64_t parent, const std::string& name, uint32_t mode = 0644) {
    wire::CreateRequest request = New(parent, name, mode);
    request.set_open_flags(2);
    return Ask<wire::EntryReply>(wire::MDS_CREATE, request).attr().inode();
  }
  wire::EntryReply Stat(uint64_t inode) {
    return Ask<wire::EntryReply>(wire::MDS_GETATTR, At(inode));
  }
  wire::EntryReply Grow(uint64_t inode, uint64_t size) {
    wire::WroteRequest request;
    request.set_inode(inode);
    request.set_size_at_least(size);
    return Ask<wire::EntryReply>(wire::MDS_WROTE, request);
  }
  ErrorCode Release(uint64_t inode) {
    wire::ReleaseRequest request;
    request.add_inodes(inode);
    return Code(wire::MDS_RELEASE, request);
  }
  std::string Get(uint64_t inode, const std::string& name) {
    const Answer answer = Try(wire::MDS_GETXATTR, Xattr(inode, name));
    if (!answer.status.ok()) return "error " + std::string(ToText(answer.status.code()));
    wire::XattrReply reply;
    EXPECT_TRUE(reply.ParseFromString(answer.body));
    return reply.value();
  }
  ErrorCode Tag(uint64_t inode, const std::string& value) {
    return Code(wire::MDS_SETXATTR, Xattr(inode, "user.qos.class", value));
  }
  wire::ClassInfo MakeClass(const std::string& name) {
    wire::SetClassRequest request;
    request.set_name(name);
    auto call = Send(wire::MDS_CLASS_CREATE, request);
    Obey();
    const Answer answer = Finish(call);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    wire::ClassInfo info;
    EXPECT_TRUE(info.ParseFromString(answer.body));
    return info;
  }
  // Every OSD says that it has the newest map.
  void Obey() {
    const auto map = core->keeper().map();
    for (const auto& [id, osd] : map->osds) {
      wire::WatchRequest watch;
      watch.set_osd_id(id.value);
      watch.set_have_epoch(map->epoch.value);
      Send(wire::MDS_WATCH, watch);
    }
  }
  // An administration call, obeyed by all.
  Answer Admin(uint32_t method, const google::protobuf::Message& request) {
    auto call = Send(method, request);
    Obey();
    return Finish(call);
  }
  std::vector<std::string> List(uint64_t directory) {
    std::vector<std::string> names;
    wire::ReaddirRequest request;
    *request.mutable_caller() = Caller();
    request.set_inode(directory);
    request.set_max_entries(3);
    while (true) {
      const auto reply = Ask<wire::ReaddirReply>(wire::MDS_READDIR, request);
      for (const wire::DirEntry& entry : reply.entries()) {
        names.push_back(entry.name());
        request.set_after_cookie(entry.cookie());
      }
      if (reply.end()) return names;
    }
  }

  MemKvStore mem;
  testing::ColdKvStore cold{mem};
  // Of the next Start. With on_missing what is missing is loaded by the test.
  std::function<void()> on_missing;
  size_t cached_keys = 400'000;
  testing::ManualClock clock;
  RecordingOsds osds;
  std::unique_ptr<MdsCore> core;
  uint64_t session = 7;
  uint64_t last_id = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
};

}  // namespace weir::mds
