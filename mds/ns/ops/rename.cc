// rename(2) with RENAME_NOREPLACE, RENAME_EXCHANGE and RENAME_WHITEOUT.
#include <sys/stat.h>

#include <optional>

#include "mds/ns/acl.h"
#include "mds/ns/operation.h"
#include "mds/ns/ops/ops.h"
#include "mds/ns/usage.h"

namespace weir::mds {
namespace {

constexpr uint32_t kNoReplace = 1;  // RENAME_NOREPLACE
constexpr uint32_t kExchange = 2;   // RENAME_EXCHANGE
constexpr uint32_t kWhiteout = 4;   // RENAME_WHITEOUT

// One of the two names.
struct Side {
  uint64_t parent = 0;
  std::string name;
  DentryRecord dentry;
  Inode inode;
  TagSource tag;
};

class Renaming {
 public:
  Renaming(Operation& op, const wire::RenameRequest& request) : op_(op), request_(request) {}

  Status Run() {
    WEIR_RETURN_IF_ERROR(CheckRequest());
    // What moves below a quota must be counted in full.
    WEIR_ASSIGN_OR_RETURN(quotas_, op_.QuotaCount());
    if (quotas_ > 0) WEIR_RETURN_IF_ERROR(TellAll(op_));
    WEIR_RETURN_IF_ERROR(LoadBoth());
    if (to_.has_value() && to_->inode.id == from_.inode.id) return Status::Ok();  // POSIX says so
    WEIR_RETURN_IF_ERROR(CheckPermissions());
    WEIR_RETURN_IF_ERROR(CheckTypes());
    WEIR_RETURN_IF_ERROR(CheckLoops());
    WEIR_RETURN_IF_ERROR(Exchange() ? Swap() : Move());
    // Its kernel takes along what it knew of the names.
    FileLeases& leases = op_.context.file_leases;
    leases.Moves(op_.context.session, old_parent_.id, new_parent_.id);
    if (Exchange()) leases.Moves(op_.context.session, new_parent_.id, old_parent_.id);
    return NoteTags();
  }

  [[nodiscard]] wire::TouchedReply Touched() {
    wire::TouchedReply reply;
    op_.FillParent(*OldParent(), &reply);
    if (NewParent() != OldParent()) op_.FillParent(*NewParent(), &reply);
    reply.add_inodes(from_.inode.id);
    if (to_.has_value()) reply.add_inodes(to_->inode.id);
    reply.set_kept(op_.effects.kept);
    // How far it may grow where it is now is not known yet. What a directory holds is its own
    // affair.
    const bool tells = quotas_ == 0 && !from_.inode.IsDirectory();
    if (tells) op_.FillAttr(from_.inode, reply.add_moved());
    return reply;
  }

 private:
  [[nodiscard]] bool Exchange() const { return (request_.flags() & kExchange) != 0; }

  Status CheckRequest() const {
    const bool other_than_exchange = (request_.flags() & ~kExchange) != 0;
    if ((request_.flags() & ~(kNoReplace | kExchange | kWhiteout)) != 0 ||
        (Exchange() && other_than_exchange)) {
      return {ErrorCode::kInvalid, "rename knows EXCHANGE, or NOREPLACE and WHITEOUT"};
    }
    for (const std::string* name : {&request_.old_name(), &request_.new_name()}) {
      if (*name == "." || *name == "..") {
        return {ErrorCode::kBusy, "'.' and '..' cannot be renamed"};
      }
      WEIR_RETURN_IF_ERROR(CheckNewName(*name));
    }
    return Status::Ok();
  }

  Status LoadBoth() {
    WEIR_ASSIGN_OR_RETURN(old_parent_, op_.LoadParent(request_.old_parent()));
    WEIR_ASSIGN_OR_RETURN(new_parent_, op_.LoadParent(request_.new_parent()));
    for (const Inode* parent : {&old_parent_, &new_parent_}) {
      WEIR_RETURN_IF_ERROR(CheckAccess(op_.who(), parent->rec, kMayExecute));
    }
    WEIR_RETURN_IF_ERROR(LoadSide(old_parent_.id, request_.old_name(), &from_));
    Side to;
    Status found = LoadSide(new_parent_.id, request_.new_name(), &to);
    if (found.ok()) {
      to_ = std::move(to);
    } else if (found.code() != ErrorCode::kNotFound || Exchange()) {
      return found;
    }
    if (to_.has_value() && (request_.flags() & kNoReplace) != 0) {
      return {ErrorCode::kExists, "'" + request_.new_name() + "' exists already"};
    }
    if (new_parent_.rec.nlink() == 0) {
      return InodeError(ErrorCode::kNotFound, new_parent_.id, "is a removed directory");
    }
    return Status::Ok();
  }

  Status LoadSide(uint64_t parent, const std::string& name, Side* side) {
    side->parent = parent;
    side->name = name;
    WEIR_ASSIGN_OR_RETURN(side->dentry, op_.FindDentry(parent, name));
    WEIR_ASSIGN_OR_RETURN(side->inode, op_.Load(side->dentry.inode()));
    WEIR_ASSIGN_OR_RETURN(side->tag, op_.context.classes.SourceOf(op_, side->inode));
    return Status::Ok();
  }

  Status CheckPermissions() const {
    for (const Inode* parent : {&old_parent_, &new_parent_}) {
      WEIR_RETURN_IF_ERROR(CheckAccess(op_.who(), parent->rec, kMayWrite));
    }
    WEIR_RETURN_IF_ERROR(CheckSide(old_parent_, from_));
    if (to_.has_value()) WEIR_RETURN_IF_ERROR(CheckSide(new_parent_, *to_));
    return Status::Ok();
  }

  // A directory that gets another parent is itself changed (its ".."), unless it is replaced.
  Status CheckSide(const Inode& parent, const Side& side) const {
    op_.Judges(side.inode);
    WEIR_RETURN_IF_ERROR(CheckSticky(op_.who(), parent.rec, side.inode.rec));
    const bool moves = (&side == &from_ || Exchange()) && old_parent_.id != new_parent_.id;
    if (!moves || !side.inode.IsDirectory()) return Status::Ok();
    return CheckAccess(op_.who(), side.inode.rec, kMayWrite);
  }

  Status CheckTypes() const {
    if (!to_.has_value() || Exchange()) return Status::Ok();
    const Inode& target = to_->inode;
    if (target.IsDirectory() && !from_.inode.IsDirectory()) {
      return InodeError(ErrorCode::kIsDirectory, target.id, "is a directory, the source is not");
    }
    if (!target.IsDirectory() && from_.inode.IsDirectory()) {
      return InodeError(ErrorCode::kNotDirectory, target.id, "is not a directory, the source is");
    }
    if (target.IsDirectory() && target.rec.entries() > 0) {
      return InodeError(ErrorCode::kNotEmpty, target.id, "is a directory that is not empty");
    }
    return Status::Ok();
  }

  Status CheckLoops() {
    WEIR_RETURN_IF_ERROR(CheckNotAbove(from_.inode, new_parent_));
    if (Exchange()) WEIR_RETURN_IF_ERROR(CheckNotAbove(to_->inode, old_parent_));
    return Status::Ok();
  }

  // kInvalid when `directory` is `below` or an ancestor of it.
  Status CheckNotAbove(const Inode& directory, const Inode& below) {
    if (!directory.IsDirectory()) return Status::Ok();
    for (Inode at = below; at.id != kRootInode.value;) {
      if (at.id == directory.id) {
        return InodeError(ErrorCode::kInvalid, directory.id, "cannot move below itself");
      }
      WEIR_ASSIGN_OR_RETURN(at, op_.LoadParent(at.rec.parent()));
    }
    return Status::Ok();
  }

  // The directories as they are stored at the end; one object when both are the same.
  Inode* OldParent() { return &old_parent_; }
  Inode* NewParent() { return old_parent_.id == new_parent_.id ? &old_parent_ : &new_parent_; }

  void StoreParents() {
    op_.Modified(OldParent());
    op_.StoreParent(*OldParent());
    if (NewParent() == OldParent()) return;
    op_.Modified(NewParent());
    op_.StoreParent(*NewParent());
  }

  Status Move() {
    if ((request_.flags() & kWhiteout) != 0) {
      WEIR_RETURN_IF_ERROR(LeaveWhiteout());
    } else {
      op_.RemoveDentry(OldParent(), from_.name, from_.dentry);
    }
    if (to_.has_value()) {
      op_.RetargetDentry(NewParent()->id, to_->name, to_->dentry, from_.inode);
    } else {
      op_.AddDentry(NewParent(), request_.new_name(), from_.inode);
    }
    StoreParents();
    Relink(&from_, NewParent()->id, request_.new_name());
    if (!to_.has_value()) return Status::Ok();
    return op_.DropLink(&to_->inode, to_->parent, to_->name);
  }

  // A device file of number 0, which overlayfs takes for "nothing here". The name existed all the
  // time: readdir finds it where it was.
  Status LeaveWhiteout() {
    WEIR_ASSIGN_OR_RETURN(Inode whiteout, op_.NewInode(*OldParent(), from_.name, S_IFCHR));
    InheritAcl(OldParent()->rec, 0, &whiteout.rec);
    op_.Store(whiteout);
    op_.Count(OldParent()->id, ShareOf(whiteout.rec), 1);
    if (from_.inode.IsDirectory()) OldParent()->rec.set_nlink(OldParent()->rec.nlink() - 1);
    op_.RetargetDentry(OldParent()->id, from_.name, from_.dentry, whiteout);
    return Status::Ok();
  }

  Status Swap() {
    const int moved_up = (to_->inode.IsDirectory() ? 1 : 0) - (from_.inode.IsDirectory() ? 1 : 0);
    OldParent()->rec.set_nlink(OldParent()->rec.nlink() + moved_up);
    NewParent()->rec.set_nlink(NewParent()->rec.nlink() - moved_up);
    op_.RetargetDentry(OldParent()->id, from_.name, from_.dentry, to_->inode);
    op_.RetargetDentry(NewParent()->id, to_->name, to_->dentry, from_.inode);
    StoreParents();
    const Side old = from_;
    Relink(&from_, to_->parent, to_->name);
    Relink(&*to_, old.parent, old.name);
    return Status::Ok();
  }

  // Its link `side->parent/side->name` becomes `parent/name`.
  void Relink(Side* side, uint64_t parent, const std::string& name) {
    InodeRecord& rec = side->inode.rec;
    if (rec.parent() == side->parent && rec.name() == side->name) {
      op_.Count(side->parent, ShareOf(rec), -1);
      op_.Count(parent, ShareOf(rec), 1);
      rec.set_parent(parent);
      rec.set_name(name);
    } else {
      op_.txn.Delete(MakeKey(Table::kBackref, side->inode.id, side->parent, side->name));
      op_.txn.Put(MakeKey(Table::kBackref, side->inode.id, parent, name), "");
    }
    op_.Changed(&side->inode);
    op_.Store(side->inode);
    if (side->inode.IsDirectory()) op_.effects.tree_moved = true;
  }

  Status NoteTags() {
    if (op_.effects.tree_moved) op_.context.classes.Forget();
    WEIR_RETURN_IF_ERROR(NoteTagsOf(from_));
    if (to_.has_value() && to_->inode.rec.nlink() > 0) WEIR_RETURN_IF_ERROR(NoteTagsOf(*to_));
    return Status::Ok();
  }

  Status NoteTagsOf(const Side& side) {
    WEIR_ASSIGN_OR_RETURN(const TagSource now, op_.context.classes.SourceOf(op_, side.inode));
    if (now.inode != side.tag.inode) op_.TagsChanged();
    return Status::Ok();
  }

  Operation& op_;
  const wire::RenameRequest& request_;
  uint64_t quotas_ = 0;  // how many there are
  Inode old_parent_;
  Inode new_parent_;
  Side from_;
  std::optional<Side> to_;
};

}  // namespace

TouchedResult Rename(Operation& op, const wire::RenameRequest& request) {
  op.SetCaller(request.caller());
  op.keeps = request.keep();
  Renaming renaming(op, request);
  WEIR_RETURN_IF_ERROR(renaming.Run());
  return renaming.Touched();
}

}  // namespace weir::mds
