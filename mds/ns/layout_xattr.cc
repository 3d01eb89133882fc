#include "mds/ns/layout_xattr.h"

#include "common/base/units.h"
#include "common/placement/striper.h"
#include "mds/ns/operation.h"

namespace weir::mds {
namespace {

FileLayout ToFileLayout(const LayoutRecord& record) {
  FileLayout layout;
  layout.stripe_unit = record.stripe_unit();
  layout.stripe_count = record.stripe_count();
  layout.object_size = record.object_size();
  layout.pool = PoolId(record.pool());
  layout.tier = TierName::FromWire(record.tier());
  return layout;
}

Status SetNumber(LayoutRecord* layout, std::string_view word, std::string_view value) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t number, ParseSize(value));
  if (word == "stripe_unit") {
    layout->set_stripe_unit(number);
    // A unit larger than the object takes the object along; the other order is refused below.
    if (layout->object_size() < number) layout->set_object_size(number);
  } else if (word == "object_size") {
    layout->set_object_size(number);
    if (layout->stripe_unit() > number) layout->set_stripe_unit(number);
  } else {
    if (number > UINT32_MAX) return {ErrorCode::kInvalid, "stripe_count is at most 1024"};
    layout->set_stripe_count(static_cast<uint32_t>(number));
  }
  return ValidateLayout(ToFileLayout(*layout));
}

Status SetPool(const ClusterView& cluster, LayoutRecord* layout, std::string_view value) {
  const auto pool = cluster.PoolIdOf(value);
  if (!pool.has_value()) {
    return {ErrorCode::kInvalid,
            "there is no pool '" + std::string(value) + "'; 'osdctl pool ls' lists what there is"};
  }
  layout->set_pool(*pool);
  return Status::Ok();
}

Status SetTier(const ClusterView& cluster, LayoutRecord* layout, std::string_view value) {
  WEIR_RETURN_IF_ERROR(cluster.CheckTier(layout->pool(), value));
  layout->set_tier(std::string(value));
  return Status::Ok();
}

}  // namespace

Result<std::string> GetLayoutWord(Operation& op, const Inode& inode, std::string_view word) {
  const LayoutRecord& layout = inode.rec.layout();
  if (word == "stripe_unit") return std::to_string(layout.stripe_unit());
  if (word == "stripe_count") return std::to_string(layout.stripe_count());
  if (word == "object_size") return std::to_string(layout.object_size());
  if (word == "pool") return op.context.cluster.PoolNameOf(layout.pool());
  if (word == "tier" && !layout.tier().empty()) return layout.tier();
  return Status(ErrorCode::kNoData);
}

Status SetLayoutWord(Operation& op, Inode* inode, std::string_view word, std::string_view value) {
  if (!inode->IsDirectory() && !inode->IsRegular()) {
    return InodeError(ErrorCode::kPermission, inode->id, "is neither a file nor a directory");
  }
  // A removal looks for all data where the layout says, also for what is still to be cut off.
  if (inode->IsRegular()) op.waits_for_truncate = inode->id;
  // Space that is kept behind the end, and what somebody left there, lie where the layout says,
  // too.
  const bool may_have_data =
      inode->IsRegular() && (inode->Reach() > 0 || op.HasLooseEnd(*inode) ||
                             op.context.opens.WrittenElsewhere(op.context.session, inode->id));
  if (may_have_data) {
    return InodeError(ErrorCode::kInvalid, inode->id,
                      "has data or is being written: a layout is set on an empty file or on a "
                      "directory");
  }
  LayoutRecord layout = inode->rec.layout();
  if (word == "pool") {
    WEIR_RETURN_IF_ERROR(SetPool(op.context.cluster, &layout, value));
    if (inode->IsRegular()) WEIR_RETURN_IF_ERROR(op.context.cluster.UsePool(layout.pool()));
  } else if (word == "stripe_unit" || word == "object_size" || word == "stripe_count") {
    WEIR_RETURN_IF_ERROR(SetNumber(&layout, word, value).Annotate(std::string(word)));
  } else if (word == "tier") {
    WEIR_RETURN_IF_ERROR(SetTier(op.context.cluster, &layout, value));
  } else {
    return {ErrorCode::kInvalid, "user.weir.layout." + std::string(word) +
                                     " is unknown; there is stripe_unit, stripe_count, "
                                     "object_size, pool, tier"};
  }
  *inode->rec.mutable_layout() = layout;
  if (inode->IsDirectory()) inode->rec.set_layout_explicit(true);
  return Status::Ok();
}

Status ResetLayout(Operation& op, Inode* directory) {
  if (!directory->IsDirectory() || !directory->rec.layout_explicit()) {
    return Status(ErrorCode::kNoData);
  }
  directory->rec.set_layout_explicit(false);
  if (directory->id == kRootInode.value) {
    const FileLayout plain;
    LayoutRecord* layout = directory->rec.mutable_layout();
    layout->set_stripe_unit(plain.stripe_unit);
    layout->set_stripe_count(plain.stripe_count);
    layout->set_object_size(plain.object_size);
    layout->set_pool(plain.pool.value);
    layout->clear_tier();
    return Status::Ok();
  }
  WEIR_ASSIGN_OR_RETURN(const Inode parent, op.Load(directory->rec.parent()));
  *directory->rec.mutable_layout() = parent.rec.layout();
  return Status::Ok();
}

std::string DescribeLayout(const Operation& op, const Inode& inode) {
  const LayoutRecord& layout = inode.rec.layout();
  return "stripe_unit=" + std::to_string(layout.stripe_unit()) +
         " stripe_count=" + std::to_string(layout.stripe_count()) +
         " object_size=" + std::to_string(layout.object_size()) +
         " pool=" + op.context.cluster.PoolNameOf(layout.pool()) +
         (layout.tier().empty() ? "" : " tier=" + layout.tier());
}

}  // namespace weir::mds
