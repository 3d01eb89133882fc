#include "client/vfs/inode_news.h"

#include <algorithm>
#include <optional>

#include "common/wire/mds.pb.h"

namespace weir::client {
namespace {

// Nobody knows whether what was asked for has been done.
bool MayHaveHappened(ErrorCode code) {
  return code == ErrorCode::kTimedOut || code == ErrorCode::kUnreachable ||
         code == ErrorCode::kCancelled;
}

}  // namespace

// Alone, every stamp is of one clock.
FileAttr InodeNews::Heard(const wire::Attr& attr) {
  if (!leases_.alone()) (void)stamps_.Saw(attr.ctime_ns());
  return FromWire(attr);
}

void InodeNews::LearnClass(Inode& inode, const wire::EntryReply& reply, uint64_t asked) {
  if (!reply.has_effective_class()) return;
  const wire::EffectiveClass& found = reply.effective_class();
  classes_.Heard(inode, found.tagged() ? std::optional(ClassId(found.class_id())) : std::nullopt,
                 asked);
}

void InodeNews::Changed(std::initializer_list<InodeId> inodes) {
  for (const InodeId id : inodes) {
    if (const InodePtr inode = inodes_.Find(id)) {
      leases_.Changed(inode.get());
    } else {
      leases_.Changed();
    }
  }
}

void InodeNews::NamesChanged(DirCache::Changing* changing, const Result<wire::EntryReply>& reply) {
  const wire::Attr* const told =
      reply.ok() && reply->has_directory() ? &reply->directory() : nullptr;
  TakeDirectories(changing, {&told, told == nullptr ? size_t{0} : size_t{1}});
}

void InodeNews::NamesChanged(DirCache::Changing* changing,
                             const Result<wire::TouchedReply>& reply) {
  if (!reply.ok()) {
    TakeDirectories(changing, {});
    if (MayHaveHappened(reply.code())) leases_.Changed();
    return;
  }
  TakeDirectories(changing, {reply->directories().data(), size_t(reply->directories_size())});
  if (reply->inodes().empty()) leases_.Changed();  // an older MDS does not tell
  for (const uint64_t inode : reply->inodes()) {
    Take(InodeId(inode), {reply->moved().data(), size_t(reply->moved_size())});
  }
}

// `told`: of what a change of ours has touched, as it is after that; the rest is to be asked for.
void InodeNews::Take(InodeId id, std::span<const wire::Attr* const> told) {
  const auto now = std::find_if(told.begin(), told.end(),
                                [id](const wire::Attr* one) { return one->inode() == id.value; });
  const InodePtr inode = inodes_.Find(id);
  if (now == told.end() || inode == nullptr) return Changed({id});
  (void)inodes_.Update(inode, Heard(**now));
}

// Until the change ends here, the kernel is given nothing of them to keep.
void InodeNews::TakeDirectories(DirCache::Changing* changing,
                                std::span<const wire::Attr* const> told) {
  for (const InodeId id : DirCache::DirectoriesOf(*changing)) Take(id, told);
  directories_.End(changing);
}

}  // namespace weir::client
