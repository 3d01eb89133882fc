#include "client/remote/ordered_calls.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/wire/early_answers.h"
#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

// Inode that an answer has made, or 0: a CREATE may have opened one that was there, which may not
// be durable either.
uint64_t MadeBy(uint32_t method, const net::Reply& reply) {
  const bool makes =
      method == wire::MDS_CREATE || method == wire::MDS_TMPFILE || method == wire::MDS_MKNOD;
  wire::EntryReply entry;
  return makes && entry.ParseFromString(reply.body) ? entry.attr().inode() : 0;
}

// Inode that a removal has kept for this mount, or 0.
uint64_t KeptBy(uint32_t method, const net::Reply& reply) {
  const bool removes =
      method == wire::MDS_UNLINK || method == wire::MDS_RMDIR || method == wire::MDS_RENAME;
  wire::TouchedReply touched;
  return removes && touched.ParseFromString(reply.body) ? touched.kept() : 0;
}

// Whether an answer without an error shows that its inode is there.
bool Shows(uint32_t method) {
  return method == wire::MDS_LOOKUP || method == wire::MDS_GETATTR || method == wire::MDS_OPEN ||
         method == wire::MDS_CREATE;
}

// The directories and the inode whose names or attributes a request changes.
std::vector<uint64_t> ChangedBy(uint32_t method, const std::string& body) {
  wire::NameRequest removal;
  wire::CreateRequest creation;
  wire::RenameRequest rename;
  wire::LinkRequest link;
  wire::XattrRequest xattr;
  switch (method) {
    case wire::MDS_UNLINK:
    case wire::MDS_RMDIR:
      if (removal.ParseFromString(body)) return {removal.parent()};
      break;
    case wire::MDS_CREATE:
    case wire::MDS_MKNOD:
      if (creation.ParseFromString(body)) return {creation.parent()};
      break;
    case wire::MDS_RENAME:
      if (rename.ParseFromString(body)) return {rename.old_parent(), rename.new_parent()};
      break;
    case wire::MDS_LINK:
      if (link.ParseFromString(body)) return {link.inode(), link.new_parent()};
      break;
    case wire::MDS_SETXATTR:
    case wire::MDS_REMOVEXATTR:
      if (xattr.ParseFromString(body)) return {xattr.inode()};
      break;
    default:
      break;
  }
  return {};
}

}  // namespace

OrderedCalls::OrderedCalls(MdsChannels& channels, Options options)
    : channels_(channels), options_(std::move(options)) {}

void OrderedCalls::Call(size_t channel, uint32_t method, std::string body,
                        const net::CallOptions& call, Callback callback) {
  net::RpcClient& rpc = channels_.at(channel);
  if (options_.keeps && options_.names->doubts() && Shows(method)) {
    callback = Looking(std::move(callback));
  }
  if (call.idempotent || options_.within == Duration::zero()) {
    return rpc.Call(method, std::move(body), {}, call, std::move(callback));
  }
  if (options_.keeps && wire::EarlyAnswerOf(method) == wire::EarlyAnswer::kAlways) {
    KeptRequests::Request kept;
    kept.channel = channel;
    kept.method = method;
    kept.id = rpc.ReserveId();
    kept.body = std::make_shared<const std::string>(std::move(body));
    return Send(std::move(kept), call, std::move(callback));
  }
  rpc.Call(method, std::move(body), {}, call,
           [this, method, callback = std::move(callback)](Result<net::Reply> reply) {
             wire::Ordered said;
             if (reply.ok()) Note(method, *reply, &said);
             callback(std::move(reply));
           });
}

// What was made in a life before is there if the MDS of this one knows it. Before whoever asked
// goes on.
OrderedCalls::Callback OrderedCalls::Looking(Callback callback) {
  return [this, asked_in = life_.load(), callback = std::move(callback)](Result<net::Reply> reply) {
    wire::EntryReply entry;
    if (reply.ok() && entry.ParseFromString(reply->body)) {
      const std::lock_guard lock(mutex_);
      if (life_ == asked_in) options_.names->Shown(InodeId(entry.attr().inode()));
    }
    callback(std::move(reply));
  };
}

void OrderedCalls::Send(KeptRequests::Request kept, const net::CallOptions& call,
                        Callback callback) {
  net::CallOptions reserved = call;
  reserved.reserved_id = kept.id;
  net::RpcClient& rpc = channels_.at(kept.channel);
  const uint32_t method = kept.method;
  std::string body = *kept.body;
  rpc.Call(method, std::move(body), {}, reserved,
           [this, kept = std::move(kept), call,
            callback = std::move(callback)](Result<net::Reply> reply) mutable {
             OnAnswer(std::move(kept), call, std::move(reply), callback);
           });
}

void OrderedCalls::OnAnswer(KeptRequests::Request kept, const net::CallOptions& call,
                            Result<net::Reply> reply, const Callback& callback) {
  const MdsChannels::Use use(channels_);
  if (!use) return callback(std::move(reply));
  const size_t channel = kept.channel;
  const uint64_t id = kept.id;
  uint64_t order = 0;
  {
    // With the lock, for what is kept is taken whole when another life begins.
    const std::lock_guard lock(mutex_);
    wire::Ordered said;
    order = reply.ok() ? Note(kept.method, *reply, &said) : 0;
    if (order != 0 && said.life() == life_) {
      kept.inode = MadeBy(kept.method, *reply);
      kept.stamp_ns = said.stamp_ns();
      kept_.Keep(order, kept);
      kept.body = nullptr;
    }
  }
  // An answer of the life before, read late: what was kept of that has been taken without it.
  // Nobody has heard of it.
  if (order != 0 && kept.body != nullptr) return Send(std::move(kept), call, callback);
  if (order == 0) channels_.at(channel).FreeId(id);  // durable, or refused
  FreeDurable();
  callback(std::move(reply));
}

uint64_t OrderedCalls::Note(uint32_t method, const net::Reply& reply, wire::Ordered* said) const {
  wire::OrderedAnswer answer;
  if (!answer.ParseFromString(reply.body) || !answer.has_ordered()) return 0;
  *said = answer.ordered();
  if (options_.keeps && said->life() != life_) return said->order();  // see OnAnswer
  return options_.names->Heard(*said, InodeId(MadeBy(method, reply)));
}

void OrderedCalls::Commit(std::function<void(const Status&)> done) {
  const MdsChannels::Use use(channels_);
  if (!use) return done(Status(ErrorCode::kCancelled, "the mount is going away"));
  net::CallOptions call;
  call.timeout = options_.timeout;
  call.idempotent = true;
  net::RpcClient& rpc = channels_.at(channels_.Here());
  rpc.Call(
      wire::MDS_COMMIT, wire::Empty().SerializeAsString(), {}, call,
      [this, asked_in = life_.load(), done = std::move(done)](const Result<net::Reply>& reply) {
        if (!reply.ok()) return done(reply.status());
        wire::OrderedAnswer answer;
        if (!answer.ParseFromString(reply->body)) {
          return done(Status(ErrorCode::kBadMessage, "the MDS sent a reply that cannot be read"));
        }
        if (SaysNothing(answer.ordered(), asked_in, done)) return;
        Heard(answer.ordered());
        done(Status::Ok());
      });
}

// What was asked and answered in a life before is so. A later one may have gone on without this
// mount, as the next session tells.
bool OrderedCalls::SaysNothing(const wire::Ordered& said, uint64_t asked_in,
                               const std::function<void(const Status&)>& done) {
  if (!options_.keeps || options_.within == Duration::zero()) return false;
  const std::lock_guard lock(mutex_);
  if (said.life() == life_ ? !repeating_ : said.life() == asked_in) return false;
  commits_.push_back(done);
  return true;
}

void OrderedCalls::Tick() {
  std::vector<std::function<void(const Status&)>> commits;
  {
    const std::lock_guard lock(mutex_);
    if (!repeating_) commits.swap(commits_);
  }
  for (auto& done : commits) Commit(std::move(done));
}

void OrderedCalls::Stop() {
  std::vector<std::function<void(const Status&)>> commits;
  {
    const std::lock_guard lock(mutex_);
    commits.swap(commits_);
  }
  for (const auto& done : commits) done(Status(ErrorCode::kCancelled, "the mount is going away"));
}

void OrderedCalls::Heard(const wire::Ordered& said) {
  if (options_.within == Duration::zero()) return;
  {
    const std::lock_guard lock(mutex_);
    if (options_.keeps && said.life() != life_) return;
    (void)options_.names->Heard(said);
  }
  FreeDurable();
}

void OrderedCalls::FreeDurable() {
  const MdsChannels::Use use(channels_);
  if (!options_.keeps || !use) return;
  std::vector<KeptRequests::Request> durable;
  {
    const std::lock_guard lock(mutex_);
    durable = kept_.TakeDurable(options_.names->durable());
  }
  for (const KeptRequests::Request& done : durable) channels_.at(done.channel).FreeId(done.id);
}

// What was kept of the life before is to be repeated.
void OrderedCalls::BeginLife(uint64_t life) {
  const std::lock_guard lock(mutex_);
  const uint64_t before = life_.exchange(life);
  if (!options_.keeps || before == 0 || before == life) return;
  repeating_ = true;
  std::vector<KeptRequests::Request> kept = kept_.TakeAll();
  unrepeated_.insert(unrepeated_.end(), kept.begin(), kept.end());
  options_.names->BeginLife();
}

void OrderedCalls::Repeat(std::function<void(bool)> done) {
  if (!options_.keeps) return done(true);
  RepeatNext(std::move(done));
}

// One after the other: what the MDS has to load for one others could pass.
void OrderedCalls::RepeatNext(std::function<void(bool)> done) {
  const MdsChannels::Use use(channels_);
  if (!use) return;
  wire::ReplayRequest request;
  net::CallOptions call;
  call.timeout = options_.timeout;
  {
    const std::lock_guard lock(mutex_);
    if (!unrepeated_.empty()) {
      const KeptRequests::Request& next = unrepeated_.front();
      request.set_method(next.method);
      request.set_body(*next.body);
      request.set_inode(next.inode);
      request.set_stamp_ns(next.stamp_ns);
      request.set_connection(static_cast<uint32_t>(next.channel));
      request.set_request_id(next.id);
    }
  }
  if (request.request_id() == 0) return EndRepeat(std::move(done));
  channels_.first().Call(wire::MDS_REPLAY, request.SerializeAsString(), {}, call,
                         [this, done = std::move(done)](const Result<net::Reply>& reply) mutable {
                           OnRepeated(reply, std::move(done));
                         });
}

void OrderedCalls::OnRepeated(const Result<net::Reply>& reply, std::function<void(bool)> done) {
  const MdsChannels::Use use(channels_);
  if (!use) return;
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    KeptRequests::Request& first = unrepeated_.front();
    wire::Ordered said;
    const uint64_t order = reply.ok() ? Note(first.method, *reply, &said) : 0;
    // It has begun anew meanwhile: so does this, when the session is open there.
    const bool again =
        reply.code() == ErrorCode::kStaleEpoch || (order != 0 && said.life() != life_);
    if (again) {
      std::vector<KeptRequests::Request> repeated = kept_.TakeAll();
      unrepeated_.insert(unrepeated_.begin(), repeated.begin(), repeated.end());
    } else {
      // By what was durable as well: the answer that the MDS had kept opens it again.
      const bool opened = first.method == wire::MDS_CREATE || first.method == wire::MDS_TMPFILE;
      if (reply.ok() && opened && first.inode != 0) made_again_.emplace_back(first.inode);
      const uint64_t kept = reply.ok() ? KeptBy(first.method, *reply) : 0;
      if (kept != 0) kept_again_.emplace_back(kept);
      if (!reply.ok()) Lost(first);
      if (order != 0) {
        kept_.Keep(order, std::move(first));
      } else {
        channels_.at(first.channel).FreeId(first.id);  // durable, or lost
      }
      unrepeated_.pop_front();
    }
    goes_on = !again;
  }
  if (!goes_on) return done(false);
  RepeatNext(std::move(done));
}

void OrderedCalls::Lost(const KeptRequests::Request& request) {
  ++lost_;
  if (request.inode != 0) losses_.files.emplace(request.inode);
  for (const uint64_t inode : ChangedBy(request.method, *request.body)) {
    losses_.changed.emplace(inode);
  }
}

void OrderedCalls::EndRepeat(std::function<void(bool)> done) {
  size_t lost = 0;
  std::vector<InodeId> made;
  std::vector<InodeId> kept;
  {
    const std::lock_guard lock(mutex_);
    lost = std::exchange(lost_, 0);
    made.swap(made_again_);
    kept.swap(kept_again_);
    if (lost != 0) options_.names->Lost(std::exchange(losses_, {}));
    options_.names->EndRepeating();
    repeating_ = false;
  }
  if (!made.empty() && options_.on_made_again) options_.on_made_again(made);
  if (!kept.empty() && options_.on_kept_again) options_.on_kept_again(kept);
  if (lost != 0 && options_.on_lost) options_.on_lost(lost);
  net::CallOptions call;
  call.timeout = options_.timeout;
  call.idempotent = true;
  channels_.first().Call(
      wire::MDS_REPLAYED, wire::Empty().SerializeAsString(), {}, call,
      [done = std::move(done)](const Result<net::Reply>& reply) { done(reply.ok()); });
}

}  // namespace weir::client
