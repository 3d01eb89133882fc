#include "osd/chain/sync_source.h"

namespace weir::osd {

void SyncSource::Compare(const replication::Listing& listing, const SlotState& here) {
  if (!WantsListing() || listing.after != cursor_) return;
  if (!listing.last && listing.objects.empty()) return;
  std::map<ObjectId, replication::Version> there(listing.objects.begin(), listing.objects.end());
  const auto within = [&](ObjectId object) {
    return (!cursor_.has_value() || object > *cursor_) &&
           (listing.last || object <= listing.objects.back().first);
  };
  std::set<ObjectId> differing;
  for (const auto& [object, version] : there) {
    const auto found = here.objects.find(object);
    if (found == here.objects.end() || found->second.readable.version != version) {
      differing.insert(object);
    }
  }
  for (const auto& [object, record] : here.objects) {
    if (within(object) && !there.contains(object)) differing.insert(object);
  }
  for (const ObjectId object : differing) {
    if (!ahead_.contains(object)) to_do_.insert(object);
  }
  if (listing.last) {
    compared_ = true;
    ahead_.clear();
    return;
  }
  cursor_ = listing.objects.back().first;
  ahead_.erase(ahead_.begin(), ahead_.upper_bound(*cursor_));
}

}  // namespace weir::osd
