// Filesystem: what the FUSE operations share: the core, the calls under way, how long the kernel
// may believe what it was told, and the translation of inode numbers.
//
// The kernel's root is number 1 whatever directory is mounted.
// Threads: handlers run on the reactors and never block; answers come from RPC threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/fuse/call.h"
#include "client/fuse/kernel_cache.h"
#include "client/fuse/request_barrier.h"
#include "client/fuse/ring_requests.h"
#include "client/vfs/core.h"
#include "client/vfs/node_numbers.h"
#include "common/wire/mds.pb.h"

namespace weir::client {

class Filesystem {
 public:
  struct Options {
    bool exclusive = false;            // nobody else changes anything
    bool writeback_cache = false;      // of the kernel
    uint32_t readahead_bytes = 0;      // 0: the kernel's default
    AwakeProcessors* awake = nullptr;  // of Calls
  };
  Filesystem(Core& core, Options options) : core_(core), options_(options), calls_(options.awake) {}

  static Filesystem& Of(fuse_req_t req) {
    return *static_cast<Filesystem*>(fuse_req_userdata(req));
  }

  Core& core() { return core_; }
  MdsClient& mds() { return core_.mds(); }
  Calls& calls() { return calls_; }
  KernelCache& kernel_cache() { return kernel_cache_; }
  // The same for attributes alone, which never wait for data, as pages may.
  KernelCache& kernel_attributes() { return kernel_attributes_; }
  RequestBarrier& barrier() { return barrier_; }
  // Of the way back for answers.
  RingRequests& ring_requests() { return ring_requests_; }
  const Options& options() const { return options_; }
  CallPtr Begin(fuse_req_t req) { return calls_.Begin(req); }

  [[nodiscard]] InodeId ToInode(fuse_ino_t number);
  // Of a file: directories may have several.
  [[nodiscard]] fuse_ino_t ToNumber(InodeId inode);
  [[nodiscard]] std::vector<fuse_ino_t> ToNumbers(InodeId inode);
  // The inode the kernel speaks of; made when it is not known, which would be a kernel's mistake.
  InodePtr Find(fuse_ino_t number);
  // Who asks, and what an operation of his on `inode` (known or not, it may be null) is charged to.
  void FillCaller(const Call& call, const Inode* inode, wire::Caller* caller);
  void FillCaller(const Call& call, fuse_ino_t number, wire::Caller* caller);
  // Who opens a file with that call, and keeps on being charged for what is done through it.
  OpenerPtr OpenerOf(const Call& call);

  // Asks the MDS in the name of the request's caller. The kernel has judged him already: what the
  // MDS refuses is asked once more when he may more by now than was remembered of him, or when the
  // kernel judged by the same attributes: then it knows more of him. Overlayfs acts as a user, with
  // rights of its own.
  template <typename Reply, typename Request>
  void CallAs(uint32_t method, const Request& request, bool idempotent,
              std::function<void(Result<Reply>)> callback) {
    auto raw = MdsClient::Decoded<Reply>(std::move(callback));
    auto again = AskAgainFor(request);
    if (!again) return mds().CallRaw(method, request, idempotent, std::move(raw));
    mds().CallRaw(method, request, idempotent,
                  [this, method, idempotent, again = std::move(again),
                   raw = std::move(raw)](Result<net::Reply> reply) {
                    const google::protobuf::MessageLite* const better = again(reply);
                    if (better == nullptr) return raw(std::move(reply));
                    mds().CallRaw(method, *better, idempotent, raw);
                  });
  }

  // The same for a change that must happen once, also when this process dies and the kernel asks
  // its successor: that one gets the first answer. `callback` answers the kernel.
  template <typename Request>
  void CallOnce(const CallPtr& call, uint32_t method, const Request& request,
                MdsClient::RawCallback callback) {
    SendOnce(call, method, request, AskAgainFor(request), std::move(callback));
  }

  // Before data of the file is changed by that call: it loses what such changes cost it, durably,
  // and the kernel knows.
  void DropRights(const Call& call, const InodePtr& inode, const RightsLost& lost,
                  std::function<void(const Status&)> then);
  // SETATTR in the name of that call. What was written here goes first, or its report would move
  // times and size set by it. `then`: the attributes as the kernel shall see them.
  using AttrsSet = std::function<void(const Result<FileAttr>&)>;
  void SetAttributes(const CallPtr& call, const InodePtr& inode,
                     const wire::SetAttrRequest& request, AttrsSet then);
  // As he is now: for what comes out differently, and is not refused. True: other than that said.
  bool LookAgain(wire::Caller* caller);
  // The same where root may have been left without some capability.
  void LookAtRoot(wire::Caller* caller);
  // What the caller may beyond his uid and gid.
  CallerRights RightsOf(const Call& call);

  // Takes over what a reply tells of its inode; the attributes as the kernel shall see them.
  // `asked`: of FileLeases::Asked, before the request was sent.
  enum class Learns : uint8_t { kAll, kNoLease };
  FileAttr Learn(const InodePtr& inode, const wire::EntryReply& reply, uint64_t asked,
                 Learns learns = Learns::kAll);
  // The same for an entry handed to the kernel: counts a lookup, which UndoEntry takes back.
  // `place`: where the kernel looked; null: it can be no directory.
  fuse_entry_param LearnEntry(const wire::EntryReply& reply, uint64_t asked,
                              const NodeNumbers::Place* place = nullptr,
                              Learns learns = Learns::kAll);
  // An entry that this mount has found by itself. False: not any more.
  bool CountKnown(const DirCache::Look& look, const NodeNumbers::Place& place,
                  fuse_entry_param* entry);
  void UndoEntry(const fuse_entry_param& entry);
  // Counted, unless the kernel did not take it.
  void ReplyEntry(const CallPtr& call, const fuse_entry_param& entry);
  // The kernel has forgotten so many entries.
  void Forget(fuse_ino_t number, uint64_t count);
  // A rename of this mount is answered: directories take their numbers along.
  void Renamed(const wire::TouchedReply& reply, const NodeNumbers::Place& from,
               const NodeNumbers::Place& to, bool exchanged);

  // A name that is asked for or made, and what of the answer may be remembered.
  struct Naming {
    InodePtr directory;
    NodeNumbers::Place place;
    std::shared_ptr<DirCache::Asking> asking;  // of directories()
    uint64_t names_asked = 0;                  // of names()
    uint64_t asked = 0;                        // of leases()
  };
  [[nodiscard]] Naming Ask(fuse_ino_t directory, std::string name);
  // Takes over what the reply tells; for the kernel, as LearnEntry.
  fuse_entry_param LearnName(const Naming& naming, const wire::EntryReply& reply);

  // `ready` when quotas let the file reach `end`, or kQuota. Where there are any the MDS is asked,
  // once it has heard of all that was written here.
  void WhenQuotaAllows(const InodePtr& inode, uint64_t end,
                       std::function<void(const Status&)> ready);

  // `ready` when it is known here whether the file reaches `end`: the kernel asks nothing before
  // what does not go through its pages, and where it writes back it may not have told of all it
  // has.
  void WhenSizeIsKnown(const InodePtr& inode, uint64_t end, std::function<void()> ready);

  // When the mount's timeout, if any, ends a call that begins now.
  [[nodiscard]] TimePoint GiveUpAt();
  // A successor of this process would not know what the kernel was given, nor hold the leases that
  // cover it: so with one to come a shared mount gives it nothing.
  [[nodiscard]] bool KernelMayKeep() const {
    return options_.exclusive || core_.takeover() == nullptr;
  }
  // How long the kernel may keep what it is told of the attributes of an inode.
  [[nodiscard]] double KeepSeconds(const Inode& inode) const;
  // They have moved by what the kernel does not know of: it asks for them again, soon
  // (kernel_attributes().WhenTold).
  void AttributesMoved(const Inode& inode);
  // And of a name; `asked`: of KernelNames::Asked.
  [[nodiscard]] double KeepName(const Inode& directory, std::string_view name, uint64_t asked);
  // The kernel asks for every name in that directory again.
  void ForgetNames(InodeId directory);

 private:
  // What to ask instead after such an answer; null: nothing.
  using Again = std::function<const google::protobuf::MessageLite*(const Result<net::Reply>&)>;
  // A directory, and what a kernel judges by while this mount may say it.
  struct Judged {
    InodePtr directory;
    bool leased = false;
    FileAttr attr;
  };
  using Leased = std::vector<Judged>;
  template <typename Request>
  Leased DirectoriesOf(const Request& request) {
    Leased leased;
    if constexpr (requires { request.parent(); }) AddLeased(request.parent(), &leased);
    if constexpr (requires { request.old_parent(); }) AddLeased(request.old_parent(), &leased);
    if constexpr (requires { request.new_parent(); }) AddLeased(request.new_parent(), &leased);
    return leased;
  }
  template <typename Request>
  Again AskAgainFor(const Request& request) {
    if (request.caller().uid() == 0) return nullptr;
    return [this, better = std::make_shared<Request>(request), leased = DirectoriesOf(request)](
               const Result<net::Reply>& reply) -> const google::protobuf::MessageLite* {
      if (!WasRefused(reply)) return nullptr;
      if (reply.code() == ErrorCode::kAccess && StillLeased(leased)) {
        better->mutable_caller()->set_unknown(true);
        return better.get();
      }
      return LookAgain(better->mutable_caller()) ? better.get() : nullptr;
    };
  }
  void AddLeased(uint64_t directory, Leased* leased);
  // All along: the kernel has judged by what the MDS refuses by. False if there are none.
  bool StillLeased(const Leased& leased);
  static bool WasRefused(const Result<net::Reply>& reply);
  void SendOnce(const CallPtr& call, uint32_t method, const google::protobuf::MessageLite& request,
                Again again, MdsClient::RawCallback callback);
  fuse_entry_param MakeEntry(const Inode& inode, const FileAttr& attr,
                             const NodeNumbers::Place* place);
  fuse_ino_t GiveNumber(InodeId directory, const NodeNumbers::Place& place);

  Core& core_;
  const Options options_;
  Calls calls_;
  KernelCache kernel_cache_;
  KernelCache kernel_attributes_;
  RequestBarrier barrier_;
  RingRequests ring_requests_;
  NodeNumbers numbers_;  // of directories, unless alone: nobody else moves them then
};

// The answer to OPEN and, behind an entry, to CREATE, byte by byte: libfuse 3.14 has no name for
// parallel direct writes.
struct OpenReply {
  uint64_t handle = 0;
  bool direct = false;  // and parallel
  bool keep_cache = false;
  bool drop_ends = false;      // before the answer: the kernel forgets the ends of what it keeps
  bool cache_listing = false;  // of a directory
};
std::string EncodeOpen(const OpenReply& reply);
std::string EncodeCreate(const fuse_entry_param& entry, const OpenReply& reply);
// The answer to STATX, which tells when a file was made.
std::string EncodeStatx(const FileAttr& attr, double keep_seconds);

// The table of operations, filled by idea.
// `exclusive`: the kernel keeps locks.
fuse_lowlevel_ops MakeOperations(bool exclusive);
void AddMetaOps(fuse_lowlevel_ops* ops);
void AddNameOps(fuse_lowlevel_ops* ops);
void AddDirOps(fuse_lowlevel_ops* ops);
void AddOpenOps(fuse_lowlevel_ops* ops);
void AddIoOps(fuse_lowlevel_ops* ops);
void AddRangeOps(fuse_lowlevel_ops* ops);
void AddXattrOps(fuse_lowlevel_ops* ops);
void AddLockOps(fuse_lowlevel_ops* ops);

}  // namespace weir::client
