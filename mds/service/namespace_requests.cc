// Namespace methods: decode, prepare under the NamespaceDb, answer when durable.
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/net/sub_session.h"
#include "common/net/transport.h"
#include "common/wire/early_answers.h"
#include "mds/ns/acl.h"
#include "mds/ns/ops/ops.h"
#include "mds/service/mds_core.h"

namespace weir::mds {
namespace {

// The directories whose leases are in the way of a request.
using Directories = std::vector<uint64_t>;
template <typename Request>
Directories ChangesOf(uint32_t /*method*/, const Request& /*request*/) {
  return {};
}
Directories ChangesOf(uint32_t method, const wire::NameRequest& request) {
  if (method == wire::MDS_LOOKUP) return {};
  return {request.parent()};
}
Directories ChangesOf(uint32_t method, const wire::CreateRequest& request) {
  if (method == wire::MDS_TMPFILE) return {};
  return {request.parent()};
}
Directories ChangesOf(uint32_t /*method*/, const wire::RenameRequest& request) {
  return {request.old_parent(), request.new_parent()};
}
Directories ChangesOf(uint32_t /*method*/, const wire::LinkRequest& request) {
  return {request.new_parent()};
}
Directories ChangesOf(uint32_t /*method*/, const wire::SetAttrRequest& request) {
  if (!request.has_mode() && !request.has_uid() && !request.has_gid()) return {};
  return {request.inode()};
}
Directories ChangesOf(uint32_t method, const wire::XattrRequest& request) {
  if (method == wire::MDS_GETXATTR || !IsAcl(request.name())) return {};
  return {request.inode()};
}
Directories ChangesOf(uint32_t method, const wire::InodeRequest& request) {
  if (method != wire::MDS_APPEND) return {};
  return {request.inode()};
}

// The file whose size a request may move: whoever else may append to it knows the size, and has to
// learn it anew.
template <typename Request>
uint64_t ResizedBy(const Request& /*request*/) {
  return 0;
}
uint64_t ResizedBy(const wire::WroteRequest& request) {
  return request.inode();
}
uint64_t ResizedBy(const wire::AllocatedRequest& request) {
  return request.keep_size() ? 0 : request.inode();
}
uint64_t ResizedBy(const wire::SetAttrRequest& request) {
  return request.has_size() ? request.inode() : 0;
}

// Nobody waits for it to be durable: a restart knows which orphans there are.
template <typename Request>
bool IsLazy(const Request& /*request*/) {
  return false;
}
bool IsLazy(const wire::ReleaseRequest& request) {
  return request.inodes().empty();
}

// What speaks against an early answer in a request whose method may have one.
template <typename Request>
bool MustLast(const Request& /*request*/) {
  return false;
}
bool MustLast(const wire::WroteRequest& request) {
  return request.commit();
}
// Data that is changed next shall not be durable sooner than rights that are lost; a size waits for
// OSDs anyway.
bool MustLast(const wire::SetAttrRequest& request) {
  return request.kill_suid() || request.kill_capability() || request.has_size();
}
// Rights, classes, quotas and layouts decide about what comes next. Both sides keep early requests
// in memory, thousands of them: this is not longer than the target of a symbolic link.
bool MustLast(const wire::XattrRequest& request) {
  constexpr size_t kMostBytes = 4096;
  return !IsPlainXattr(request.name()) || request.value().size() > kMostBytes;
}

// Its answer may come before it is durable, if its session takes that.
template <typename Request, typename Reply>
bool MayBeEarly(const RequestOrigin& origin, const Request& request) {
  if constexpr (!requires(Reply reply) { reply.ordered(); }) return false;
  const wire::EarlyAnswer early = wire::EarlyAnswerOf(origin.method);
  const wire::EarlyAnswer least =
      origin.alone ? wire::EarlyAnswer::kAlone : wire::EarlyAnswer::kAlways;
  return early >= least && !MustLast(request);
}

bool IsOfNamespace(uint32_t method) {
  const bool posix = method >= wire::MDS_LOOKUP && method <= wire::MDS_ACCESS;
  return posix || method == wire::MDS_GROW || method == wire::MDS_APPEND ||
         method == wire::MDS_TMPFILE || method == wire::MDS_ALLOCATED ||
         method == wire::MDS_ACCESSED;
}

// What processes change, in the order in which they do, whether or not it is answered early: none
// of it is done without what came before it. Reports (WROTE, ALLOCATED, ACCESSED, RELEASE) are not
// of that order: they say what has happened.
bool ChangesInOrder(uint32_t method) {
  return method == wire::MDS_SETATTR || wire::EarlyAnswerOf(method) == wire::EarlyAnswer::kAlways;
}

// A right to write that no fence takes back: nothing that was sent with it says under which map.
bool GivesRights(uint32_t method) {
  return method == wire::MDS_GROW || method == wire::MDS_APPEND;
}

// Whose request it is. What mounts ask of their own accord, as to report what was written, is one
// user's, nobody's; others may wait for it, and whatever class it is about it begins in the order
// in which the mount has sent it: a GROW counts on the RELEASE before it.
template <typename Request>
MdsCore::Asker AskerOf(uint32_t method, const Request& request, uint64_t session) {
  MdsCore::Asker asker;
  asker.class_id = kBestEffort.value;
  asker.flow.session = session;
  // A listing reads many names, and their attributes.
  asker.cost = method == wire::MDS_READDIR ? 8 : 1;
  if constexpr (requires { request.caller().opener(); }) {
    if (request.has_caller()) {
      const wire::Caller& caller = request.caller();
      asker.class_id = caller.class_id();
      asker.flow.uid = caller.uid();
      asker.flow.opener = caller.opener();
      asker.flow.cgroup = caller.cgroup();
      return asker;
    }
  }
  asker.flow.uid = kUidOfMount;
  asker.report = true;
  return asker;
}

// When it is its turn.
using InTurn = std::function<void(const MdsCore::Asker& asker, FairQueue::Work work)>;

template <typename Request, typename Reply>
void Run(NamespaceDb& names, const InTurn& in_turn, RequestOrigin origin, const std::string& text,
         const MdsCore::Call& call, Result<Reply> (*operation)(Operation&, const Request&)) {
  auto request = std::make_shared<Request>();
  if (!request->ParseFromString(text)) {
    call->Respond(Status(ErrorCode::kBadMessage, request->GetTypeName() + " does not parse"));
    return;
  }
  origin.changes = ChangesOf(origin.method, *request);
  origin.resizes = ResizedBy(*request);
  origin.lazy = IsLazy(*request);
  origin.early =
      origin.ordered_within > Duration::zero() && MayBeEarly<Request, Reply>(origin, *request);
  const MdsCore::Asker asker = AskerOf(origin.method, *request, origin.session);
  in_turn(asker, [&names, origin = std::move(origin), call, operation,
                  request](FairQueue::Turn turn) mutable {
    origin.turn = std::move(turn);
    names.Execute(
        std::move(origin),
        [operation, request](Operation& op) -> Result<std::string> {
          const Result<Reply> reply = operation(op, *request);
          if (!reply.ok()) return reply.status();
          return reply->SerializeAsString();
        },
        [call](Status status, std::string body) {
          if (status.code() == ErrorCode::kInvalid && call->method() == wire::MDS_SETXATTR) {
            WEIR_LOG_WARN("setxattr refused: {}", status.message());
          }
          call->Respond(std::move(status), std::move(body), {});
        });
  });
}

}  // namespace

// True: it is answered, as it comes behind changes that its session has lost (`lost`), or wants a
// right of a session that is losing those it has. Not kStale then, which is said of files that are
// gone.
bool MdsCore::Refused(const Call& call, bool lost) {
  if (lost && ChangesInOrder(call->method())) {
    call->Respond(Status(ErrorCode::kStale, "others have gone on since the restart"));
    return true;
  }
  if (GivesRights(call->method()) && (lost || evictions_->Evicting(call->session()))) {
    call->Respond(Status(ErrorCode::kStaleEpoch, "the mount is evicted and does not know it yet"));
    return true;
  }
  return false;
}

bool MdsCore::HandleNamespace(const Call& call) {
  if (!IsOfNamespace(call->method())) return false;
  RequestOrigin origin = OriginOf(call);  // also of one that waits: it gives the session a lease
  const bool parks = replays_.Any();  // before HasLost: whoever is given up is so before all go on
  if (Refused(call, replays_.HasLost(call->session()))) return true;
  if (!parks) {
    RunNamespace(std::move(origin), call->body(), call);
    return true;
  }
  Replays::Work later = [this, call](bool given_up) {
    if (!Refused(call, given_up)) RunNamespace(OriginOf(call), call->body(), call);
  };
  if (!replays_.Park(call->session(), &later)) later(replays_.HasLost(call->session()));
  return true;
}

// What is durable is answered whoever asks: the session may have ended before this MDS began, and
// lost nothing.
void MdsCore::Replay(const Call& call) {
  const uint64_t session = call->session();
  RequestOrigin origin = OriginOf(call);
  wire::ReplayRequest request;
  const bool sound = request.ParseFromString(call->body()) && IsOfNamespace(request.method()) &&
                     request.connection() < net::kMostConnections;
  const uint64_t sub_session = net::OnConnection(call->sub_session(), request.connection());
  if (!sound) {
    call->Respond(Status(ErrorCode::kBadMessage, "ReplayRequest does not parse"));
  } else if (!replays_.Awaits(session) && !names_->HasAnswer(sub_session, request.request_id())) {
    call->Respond(Status(ErrorCode::kStale, "others have gone on since the restart"));
  } else if (!sessions_->IsOpen(session)) {
    call->Respond(Status(ErrorCode::kStaleEpoch, "the session is not open"));
  } else {
    origin.sub_session = sub_session;
    origin.request_id = request.request_id();
    origin.acked_below = 0;  // which is of this connection
    origin.method = request.method();
    origin.replayed_at_ns = request.stamp_ns();
    origin.replayed_inode = request.inode();
    RunNamespace(std::move(origin), request.body(), call);
  }
}

void MdsCore::RunNamespace(RequestOrigin origin, const std::string& body, const Call& call) {
  const InTurn in_turn = [this](const Asker& asker, FairQueue::Work work) {
    WhenItsTurn(asker, std::move(work));
  };
  switch (origin.method) {
#define WEIR_RUN(number, operation)                                        \
  case wire::number:                                                       \
    Run(*names_, in_turn, std::move(origin), body, call, &mds::operation); \
    break;
    WEIR_RUN(MDS_LOOKUP, Lookup)
    WEIR_RUN(MDS_GETATTR, GetAttr)
    WEIR_RUN(MDS_SETATTR, SetAttr)
    WEIR_RUN(MDS_CREATE, Create)
    WEIR_RUN(MDS_MKNOD, MakeNode)
    WEIR_RUN(MDS_UNLINK, Unlink)
    WEIR_RUN(MDS_RMDIR, RemoveDirectory)
    WEIR_RUN(MDS_RENAME, Rename)
    WEIR_RUN(MDS_LINK, Link)
    WEIR_RUN(MDS_READLINK, ReadLink)
    WEIR_RUN(MDS_READDIR, ReadDirectory)
    WEIR_RUN(MDS_OPEN, Open)
    WEIR_RUN(MDS_RELEASE, Release)
    WEIR_RUN(MDS_SETXATTR, SetXattr)
    WEIR_RUN(MDS_GETXATTR, GetXattr)
    WEIR_RUN(MDS_LISTXATTR, ListXattr)
    WEIR_RUN(MDS_REMOVEXATTR, RemoveXattr)
    WEIR_RUN(MDS_STATFS, StatFs)
    WEIR_RUN(MDS_WROTE, Wrote)
    WEIR_RUN(MDS_RESOLVE_CLASSES, ResolveClasses)
    WEIR_RUN(MDS_ACCESS, Access)
    WEIR_RUN(MDS_GROW, Grow)
    WEIR_RUN(MDS_ALLOCATED, Allocated)
    WEIR_RUN(MDS_APPEND, Append)
    WEIR_RUN(MDS_TMPFILE, MakeUnnamed)
    WEIR_RUN(MDS_ACCESSED, Accessed)
#undef WEIR_RUN
    default:
      break;
  }
}

}  // namespace weir::mds
