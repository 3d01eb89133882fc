// MdsClient: the mount's conversation with the MDS: typed calls, the session, and the watch that
// keeps the cluster map and the tag epoch fresh.
//
// An MDS that forgot the session (restart, lease expired) is told of it again with every inode that
// is open here, before anything else is believed.
// A call leaves by the connection of the reactor whose thread makes it, as soon as that has one
// (osd_client.h), and is answered there. What must not be overtaken, by its method, and what has a
// reserved id goes by the first reactor's, as do the session and the watch.
// Threads: calls from any thread; callbacks on a reactor or an RPC's I/O thread, which they must
//          not block. Tick as OsdClient's.
// Errors:  a call ends with what the MDS answered, or kTimedOut / kUnreachable after the timeout.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/remote/mds_channels.h"
#include "client/remote/ordered_calls.h"
#include "client/vfs/caller.h"
#include "common/net/rpc.h"
#include "common/placement/cluster_map.h"
#include "common/posix/kernel_path.h"
#include "common/qos/class_times.h"

namespace google::protobuf {
class MessageLite;
}

namespace weir::wire {
class FileLock;
class OpenSessionReply;
class OpenSessionRequest;
class WatchReply;
class WatchRequest;
}  // namespace weir::wire

namespace weir::client {

class DirCache;
class FileLeases;
class OrderedNames;
using MapPtr = std::shared_ptr<const ClusterMap>;

class MdsClient {
 public:
  struct Options {
    std::string endpoint;
    std::string client_name;
    std::string mount_class;
    CallerId mounter;  // who asks for that class
    std::vector<gid_t> mounter_groups;
    bool exclusive = false;  // refuses, and is refused by, every other mount
    std::string subtree;
    uint64_t session = 0;
    bool resumes = false;                // goes on with the session of a process that died
    uint64_t ids_above = 0;              // then of net::RpcClient::Options
    std::vector<uint64_t> reserved_ids;  // too
    DirCache* directories = nullptr;     // under leases of the MDS; null: asks for none
    FileLeases* files = nullptr;         // goes with them
    OrderedNames* ordered = nullptr;     // of answers that come before they are durable
    Duration ordered_within{0};          // which they are so soon; 0: takes none
    bool keeps = false;                  // these, for an MDS that begins anew
    Duration timeout = Duration::max();  // of every call
    Duration connect_timeout = std::chrono::seconds(10);  // of Open
    Duration resend_interval = net::RpcClient::Options().resend_interval;
  };
  struct Events {
    std::function<void(MapPtr)> on_map;               // a newer map
    std::function<void(uint64_t tag_epoch)> on_tags;  // effective classes may have changed
    std::function<std::vector<InodeId>()> open_inodes;
    // A session has begun in which the MDS takes those for open; may be empty. Some may have been
    // closed since they were listed, and the RELEASE may have been heard before the list.
    std::function<void(const std::vector<InodeId>&)> on_told_open;
    std::function<std::vector<InodeId>()> kept_inodes;  // of TouchedReply; may be empty
    // As on_told_open, of those.
    std::function<void(const std::vector<InodeId>&)> on_told_kept;
    // Where the time of the classes goes here; may be empty.
    std::function<std::map<ClassId, MountClassTimes>()> times;
    std::function<KernelPath()> kernel_path;                  // may be empty
    std::function<std::vector<wire::FileLock>()> held_locks;  // optional, as is the next
    // Behind the map of each session that has begun.
    std::function<void(const std::vector<wire::FileLock>&)> on_lost_locks;
    // MDS_LOCKS_SETTLED is wanted; may be empty.
    std::function<void(uint64_t seq)> on_lock_question;
    std::function<void(const std::vector<InodeId>&)> on_append_recall;  // rights are wanted back
    // The MDS has begun anew, and so much that it had answered could not be repeated.
    std::function<void(size_t)> on_lost_names;
    std::function<void()> on_session_lost;  // the MDS forgot what it gave; a new one is open
    // Leases on files: asked back, by recalls up to `seq`; gone with a session, of files that were
    // written under one.
    std::function<void(uint64_t seq, const std::vector<InodeId>&)> on_recall;
    std::function<void(const std::vector<InodeId>&)> on_lost_leases;
  };

  static Result<std::unique_ptr<MdsClient>> Connect(const ReactorNetworks& networks, Clock& clock,
                                                    Options options, Events events);
  ~MdsClient();

  // Opens the session and waits for it; on_map has run when it returns. Then starts the watch.
  Status Open();
  // The same without waiting; `done` runs as callbacks do.
  void OpenAsync(std::function<void(const Status&)> done);
  // Gives the session back, waiting at most this long. No event comes afterwards.
  void Close(Duration wait);
  // Ends the connection: what is outstanding ends with kCancelled, as does what is asked later.
  void Stop();

  using RawCallback = std::function<void(Result<net::Reply>)>;
  // `patience`: instead of the mount's timeout.
  void CallRaw(uint32_t method, const google::protobuf::MessageLite& request, bool idempotent,
               RawCallback callback, std::optional<Duration> patience = {});

  // A call that must not be repeated with another effect, under an id that was reserved.
  void CallReserved(uint64_t id, uint32_t method, const google::protobuf::MessageLite& request,
                    RawCallback callback);
  // `done` when all that the MDS has answered before is durable (ordered_calls.h).
  void Commit(std::function<void(const Status&)> done) { ordered_.Commit(std::move(done)); }
  uint64_t ReserveId();
  void FreeId(uint64_t id);

  template <typename Reply>
  void Call(uint32_t method, const google::protobuf::MessageLite& request, bool idempotent,
            std::function<void(Result<Reply>)> callback, std::optional<Duration> patience = {}) {
    CallRaw(method, request, idempotent, Decoded(std::move(callback)), patience);
  }
  template <typename Reply>
  static RawCallback Decoded(std::function<void(Result<Reply>)> callback) {
    return [callback = std::move(callback)](Result<net::Reply> raw) {
      if (!raw.ok()) return callback(raw.status());
      Reply reply;
      if (!reply.ParseFromString(raw->body)) {
        return callback(Status(ErrorCode::kBadMessage, "the MDS sent a reply that cannot be read"));
      }
      callback(std::move(reply));
    };
  }

  [[nodiscard]] bool connected();
  // For calls that can do without an answer when the MDS is lost: how long to wait before asking
  // whether it is. A slow one is not lost: such a call goes out again after kTimedOut.
  [[nodiscard]] Duration LossPatience();
  [[nodiscard]] Duration timeout() const { return options_.timeout; }
  [[nodiscard]] InodeId root() const { return InodeId(root_.load()); }
  [[nodiscard]] MapPtr map() const;
  // Restarts a watch that ended in an error, and connects reactors that have begun to call; called
  // now and then.
  void Tick();

 private:
  MdsClient(const ReactorNetworks& networks, Clock& clock, Options options, Events events);
  wire::OpenSessionRequest SessionRequest(bool first) const;
  void Told(const wire::OpenSessionRequest& request) const;
  Status TakeFirst(const Result<net::Reply>& reply, TimePoint asked);
  Status TakeSession(const std::string& body, TimePoint asked);
  Status TakeMap(MapPtr map);
  std::vector<wire::FileLock> LostLocks(const wire::OpenSessionReply& reply) const;
  void StartWatch();
  void AddTimes(wire::WatchRequest* request);
  void OnWatch(Result<net::Reply> raw, TimePoint asked);
  void ObeyRecalls(const wire::WatchReply& reply, TimePoint asked);
  [[nodiscard]] TimePoint Now() const;
  void Reopen();

  Clock& clock_;
  const Options options_;
  const Events events_;
  std::atomic<uint64_t> root_{0};
  std::atomic<uint64_t> lock_seq_{0};  // of WatchReply, heard
  std::atomic<bool> watch_broken_{false};
  mutable std::mutex mutex_;
  MapPtr map_;
  uint64_t tag_epoch_ = 0;
  FreshRows fresh_;
  // Last: their callbacks use the others.
  MdsChannels channels_;
  OrderedCalls ordered_;
};

}  // namespace weir::client
