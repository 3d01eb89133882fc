// Core: what its parts tell the MDS and ask it, each call in the words of the protocol.
#include "client/vfs/core.h"
#include "common/wire/mds.pb.h"

namespace weir::client {

void Core::SendYield(uint64_t epoch, uint64_t seq, const std::vector<InodeId>& inodes,
                     std::function<void()> done) {
  wire::YieldRequest request;
  request.set_epoch(epoch);
  request.set_seq(seq);
  for (const InodeId inode : inodes) request.add_inodes(inode.value);
  mds_->CallRaw(
      wire::MDS_YIELD, request, true,
      [done = std::move(done)](const Result<net::Reply>&) { done(); }, Duration::max());
}

void Core::ReportWrote(InodeId inode, const Inode::Report& report, bool commit,
                       std::function<void(Result<FileAttr>)> callback) {
  wire::WroteRequest request;
  const int64_t mtime_ns = options_.kernel_times ? 0 : report.mtime_ns;
  request.set_inode(inode.value);
  request.set_size_at_least(report.size_at_least);
  request.set_mtime_ns(mtime_ns);
  request.set_kill_suid(report.lost.set_ids);
  request.set_kill_capability(report.lost.capability);
  request.set_commit(commit);
  request.set_class_id(report.class_id.value);
  request.mutable_space()->set_wrote_bytes(report.space.wrote);
  request.mutable_space()->set_freed_bytes(report.space.freed);
  request.set_epoch(report.epoch);
  // Without time or attributes it would say that something was written just now.
  if (mtime_ns == 0 || !report.held.empty()) {
    const HeldAttributes& held = report.held;
    auto* attributes = request.mutable_attributes();
    if (held.mode.has_value()) attributes->set_mode(*held.mode);
    if (held.uid.has_value()) attributes->set_uid(*held.uid);
    if (held.gid.has_value()) attributes->set_gid(*held.gid);
    if (held.atime_ns.has_value()) attributes->set_atime_ns(*held.atime_ns);
    if (held.mtime_ns.has_value()) attributes->set_mtime_ns(*held.mtime_ns);
    if (!held.empty()) attributes->set_ctime_ns(held.ctime_ns);
  }
  mds_->Call<wire::EntryReply>(wire::MDS_WROTE, request, false,
                               [this, inode, asked = leases_.Asked(),
                                callback = std::move(callback)](Result<wire::EntryReply> reply) {
                                 if (!reply.ok()) return callback(reply.status());
                                 callback(Heard(reply->attr()));
                                 const InodePtr known = inodes_.Find(inode);
                                 if (known != nullptr) leases_.Learn(known, *reply, asked);
                               });
}

void Core::CommitUnless(uint64_t order, std::function<bool()> is_lost, WriteCallback callback) {
  const auto lost = [] {
    return Status(ErrorCode::kIo,
                  "the metadata server began anew without what it had answered here");
  };
  if (is_lost()) return callback(lost());
  if (ordered_.IsDurable(order)) return callback(Status::Ok());
  mds_->Commit([lost, is_lost = std::move(is_lost), callback = std::move(callback)](
                   const Status& status) { callback(status.ok() && is_lost() ? lost() : status); });
}

void Core::Commit(uint64_t order, InodeId inode, WriteCallback callback) {
  CommitUnless(
      order, [this, inode] { return ordered_.TakeLoss(inode); }, std::move(callback));
}

// Of what else is lost an fsync tells: this is no reason not to store what is there.
void Core::AwaitDurable(InodeId inode, WriteCallback callback) {
  CommitUnless(
      ordered_.last(), [this, inode] { return ordered_.IsLost(inode); }, std::move(callback));
}

void Core::ReportAllocated(InodeId inode, const AllocatedReport& report,
                           const Allocation& allocation, WriteCallback callback) {
  wire::AllocatedRequest request;
  request.set_inode(inode.value);
  request.set_end(report.end);
  request.set_keep_size(report.keep_size);
  request.set_grown_bytes(allocation.grown_bytes);
  request.set_beyond_bytes(allocation.beyond_bytes);
  request.set_mtime_ns(report.mtime_ns);
  request.set_keeps_times(options_.kernel_times);
  request.set_kill_suid(report.lost.set_ids);
  request.set_kill_capability(report.lost.capability);
  request.set_class_id(report.class_id.value);
  request.set_epoch(report.epoch);
  for (const auto& [osd, used] : allocation.used_bytes) {
    auto* use = request.add_used();
    use->set_osd(osd.value);
    use->set_used_bytes(used);
  }
  mds_->Call<wire::EntryReply>(wire::MDS_ALLOCATED, request, false,
                               [this, inode, asked = leases_.Asked(),
                                callback = std::move(callback)](Result<wire::EntryReply> reply) {
                                 if (!reply.ok()) return callback(reply.status());
                                 const InodePtr known = inodes_.Find(inode);
                                 if (known != nullptr) {
                                   known->Update(FromWire(reply->attr()));
                                   leases_.Learn(known, *reply, asked);
                                 }
                                 callback(Status::Ok());
                               });
}

void Core::AskAttributes(InodeId inode, WriteCallback callback) {
  wire::InodeRequest request;
  request.set_inode(inode.value);
  mds_->Call<wire::EntryReply>(
      wire::MDS_GETATTR, request, true,
      [this, inode, asked = leases_.Asked(),
       callback = std::move(callback)](const Result<wire::EntryReply>& reply) {
        if (!reply.ok()) return callback(reply.status());
        if (const InodePtr known = inodes_.Find(inode)) {
          (void)inodes_.Update(known, Heard(reply->attr()));
          leases_.Learn(known, *reply, asked);
        }
        callback(Status::Ok());
      });
}

void Core::AskRoom(InodeId inode, ClassId class_id, uint64_t end,
                   std::function<void(Result<uint64_t>)> callback) {
  wire::GrowRequest request;
  request.set_inode(inode.value);
  request.set_class_id(class_id.value);
  request.set_end(end);
  auto answer = [callback = std::move(callback)](const Result<wire::GrowReply>& reply) {
    if (!reply.ok()) return callback(reply.status());
    callback(reply->end());
  };
  // What was removed here right after it was closed the MDS takes to be open still.
  auto once_more = [this, request, answer](const Result<wire::GrowReply>& reply) {
    if (reply.code() != ErrorCode::kQuota) return answer(reply);
    open_files_.Tick();
    kept_.Tick();
    if (releases_.under_way() == 0) return answer(reply);
    mds_->Call<wire::GrowReply>(wire::MDS_GROW, request, true, answer);
  };
  mds_->Call<wire::GrowReply>(wire::MDS_GROW, request, true, once_more);
}

void Core::AskAppend(InodeId inode, std::function<void(Result<uint64_t>)> done) {
  wire::InodeRequest request;
  request.set_inode(inode.value);
  mds_->Call<wire::AppendReply>(
      wire::MDS_APPEND, request, false,
      [this, inode, done = std::move(done)](Result<wire::AppendReply> reply) {
        if (!reply.ok()) return done(reply.status());
        const InodePtr known = inodes_.Find(inode);
        if (known != nullptr) known->Update(Heard(reply->attr()));
        done(reply->grant());
      });
}

void Core::SettleAppend(InodeId inode, std::function<void()> done) {
  const InodePtr known = inodes_.Find(inode);
  if (known == nullptr) return done();
  files_.Sync(known, false, [known, done = std::move(done)](const Status& status) {
    if (!status.ok()) known->RememberError(status);  // for the next fsync or close
    done();
  });
}

void Core::GiveBackAppend(InodeId inode, uint64_t grant) {
  wire::GiveBackRequest request;
  request.set_inode(inode.value);
  request.set_grant(grant);
  mds_->CallRaw(wire::MDS_GIVE_BACK, request, true, [](const Result<net::Reply>&) {});
}

void Core::SendRelease(const wire::ReleaseRequest& request, std::function<void()> ended) {
  mds_->CallRaw(wire::MDS_RELEASE, request, false,
                [ended = std::move(ended)](const Result<net::Reply>&) { ended(); });
}

// The MDS counts what stays for a moment since others may ask for it, too. What is on its way to be
// released here it may not know of yet.
void Core::AskRemovals(std::function<void(Result<uint64_t>)> done) {
  open_files_.Tick();
  kept_.Tick();
  const uint64_t here = releases_.under_way();
  mds_->Call<wire::StatusReply>(
      wire::MDS_STATUS, wire::Empty(), true,
      [here, done = std::move(done)](const Result<wire::StatusReply>& reply) {
        if (!reply.ok()) return done(reply.status());
        done(reply->pending_purges() + here);
      });
}

void Core::SendReads(const std::vector<AccessTimes::Read>& reads, bool strict,
                     std::function<void()> done) {
  if (reads.empty()) return done();
  wire::AccessedRequest request;
  for (const AccessTimes::Read& read : reads) {
    auto* told = request.add_reads();
    told->set_inode(read.inode.value);
    told->set_age_ns(read.age_ns);
  }
  request.set_strict(strict);
  mds_->CallRaw(wire::MDS_ACCESSED, request, true,
                [done = std::move(done)](const Result<net::Reply>&) { done(); });
}

void Core::AskClasses(const std::vector<InodeId>& inodes,
                      std::function<void(Result<ClassResolver::Answer>)> done) {
  wire::ResolveClassesRequest request;
  for (InodeId inode : inodes) request.add_inodes(inode.value);
  mds_->Call<wire::ResolveClassesReply>(
      wire::MDS_RESOLVE_CLASSES, request, true,
      [done = std::move(done)](Result<wire::ResolveClassesReply> reply) {
        if (!reply.ok()) return done(reply.status());
        ClassResolver::Answer answer;
        answer.tag_epoch = reply->tag_epoch();
        for (const auto& entry : reply->classes()) {
          answer.classes.push_back(entry.tagged() ? std::optional(ClassId(entry.class_id()))
                                                  : std::nullopt);
        }
        done(std::move(answer));
      });
}

}  // namespace weir::client
