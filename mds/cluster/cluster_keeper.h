// ClusterKeeper: the one owner of the cluster map: OSDs and whether they are up, pools and their
// chains, classes, reservations and their admission. Every change is a new epoch.
//
// Order:   a change is durable before it shows in map() and before the call returns.
// Threads: every call from any thread; those that change something wait for the disk, so they are
// not
//          for threads that serve. `on_change` runs after each change, without the lock.
// Errors:  kInvalid, kNotFound, kExists as the words say; kRefused from admission, naming the
// largest
//          rate that fits; kWrongCluster; kIo from the store, and then nothing changed.
// Admission: admission.h; measured admission uses what each OSD told with its last WATCH.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "common/kv/kv_store.h"
#include "common/placement/cluster_map.h"
#include "common/wire/mds.pb.h"
#include "mds/cluster/limit_book.h"
#include "mds/cluster/skew_book.h"
#include "mds/cluster/time_book.h"
#include "mds/ns/cluster_view.h"

namespace weir::mds {

class ClusterRecord;
struct OsdMeasures;

inline constexpr Duration kOsdSilenceMax = std::chrono::seconds(3);

// Who asked for a change. The answer is kept with the change itself: a request that comes again,
// also after a restart, gets it instead of a second change.
struct Asked {
  uint64_t session = 0;
  uint64_t request_id = 0;  // 0: nobody repeats it
};
struct Applied {
  Asked asked;
  std::string body;
};

class ClusterKeeper final : public ClusterView {
 public:
  using OnChange = std::function<void()>;
  // Opens what the store holds, or founds a cluster with this uuid, the pool `default` and the
  // classes of common/base/ids.h.
  static Result<std::unique_ptr<ClusterKeeper>> Open(KvStore& store, Clock& clock,
                                                     const std::string& new_cluster_uuid);

  // The answer to this very request when it was applied before.
  [[nodiscard]] std::optional<std::string> AnswerTo(const Asked& asked) const;

  void SetOnChange(OnChange on_change);
  // What the OSDs still hold of files that were removed, and are about to free: Space counts it as
  // free. Asked without the lock; before other threads ask for Space.
  void SetBeingFreed(std::function<uint64_t()> being_freed) {
    being_freed_ = std::move(being_freed);
  }
  [[nodiscard]] std::shared_ptr<const ClusterMap> map() const;

  // OSDs.
  Result<OsdId> RegisterOsd(const wire::RegisterOsdRequest& request);
  // Which life of its disk an OSD registered in; 0: not since this MDS started, or it did not say.
  [[nodiscard]] uint64_t LifeOf(OsdId osd) const;
  // An OSD said that it lives and obeys `have_epoch`. False: unknown, it should register.
  // `fence_epoch`: nothing is left there of the sessions fenced up to it.
  void OsdUses(uint32_t osd, uint64_t used_bytes) override;
  // It has freed so much since it said what it uses, and will say so itself.
  void OsdFreed(OsdId osd, uint64_t freed_bytes);
  bool OsdHeard(OsdId osd, Epoch have_epoch, uint64_t used_bytes, Epoch fence_epoch = Epoch(0));
  // Whether what OSDs say they use is no longer what the map's near_full says (common/placement/
  // near_full.h): Tick changes it.
  [[nodiscard]] bool NearFullMoves() const;
  // What it measured, for measured admission; kept until it is silent or says something newer.
  void OsdMeasured(OsdId osd, const wire::ServiceMeasures& measures);
  Status SetOsd(const wire::SetOsdRequest& request, const Asked& asked = {});
  // Every OSD that is up has confirmed this epoch.
  [[nodiscard]] bool Obeyed(Epoch epoch) const;
  // "osd.1", those that have not.
  [[nodiscard]] std::vector<std::string> NotObeying(Epoch epoch) const;

  // What the sessions send under an older epoch than the one returned changes nothing on an OSD
  // any more, once Fenced says so of it (fences.cc).
  Result<Epoch> Fence(const std::vector<uint64_t>& sessions);
  [[nodiscard]] bool Fenced(Epoch epoch) const;

  // Classes.
  Result<wire::ClassInfo> CreateClass(const wire::SetClassRequest& request,
                                      const Asked& asked = {});
  Result<wire::ClassInfo> SetClass(const wire::SetClassRequest& request, const Asked& asked = {});
  Status RemoveClass(const std::string& name, const Asked& asked = {});
  Result<wire::ReserveReply> Reserve(const wire::ReserveRequest& request, const Asked& asked = {});
  // Of `user`: what he was promised of it.
  Status ReleaseReservation(const std::string& name, std::optional<uint32_t> user = {},
                            const Asked& asked = {});

  // Rules (rule_admin.cc).
  Result<wire::RuleInfo> AddRule(const wire::RuleAddRequest& request, const Asked& asked = {});
  Status RemoveRule(uint32_t number, const Asked& asked = {});

  // Pools.
  Result<wire::PoolInfo> CreatePool(const wire::PoolCreateRequest& request,
                                    const Asked& asked = {});
  Status RemovePool(const std::string& name, const Asked& asked = {});

  // Where the time of classes went lately; in memory.
  [[nodiscard]] TimeBook& times() { return times_; }
  // Which parts of limits mounts have; in memory.
  [[nodiscard]] LimitBook& limits() { return limits_; }
  // How unevenly they used the OSDs; likewise.
  [[nodiscard]] SkewBook& skew() { return skew_; }

  // Marks silent OSDs down, ends reservations whose time has come, and says whether some OSD is
  // nearly full.
  void Tick();
  // What an operator should know: promises that no longer fit, OSDs that are down.
  [[nodiscard]] std::vector<std::string> Warnings() const;

  // ClusterView.
  [[nodiscard]] std::optional<uint32_t> ClassIdOf(std::string_view name) const override;
  Status MayTag(std::string_view class_name, const Credentials& who) const override;
  uint32_t UntaggedClass(const RuleSubject& who, std::string* reason) const override;
  [[nodiscard]] std::optional<uint32_t> PoolIdOf(std::string_view name) const override;
  [[nodiscard]] std::string PoolNameOf(uint32_t pool) const override;
  Status CheckTier(uint32_t pool, std::string_view tier) const override;
  Status UsePool(uint32_t pool) override;
  [[nodiscard]] std::string DescribeObjects(uint64_t inode, const LayoutRecord& layout,
                                            uint64_t size, size_t max) const override;
  [[nodiscard]] SpaceInfo Space() const override;
  // Of each OSD, as it said last.
  [[nodiscard]] std::map<OsdId, uint64_t> UsedBytes() const;
  [[nodiscard]] std::string WhySlow(uint32_t class_id) const override;
  [[nodiscard]] bool IsFenced(uint64_t session, uint64_t epoch) const override;
  [[nodiscard]] std::optional<ClassCapacity> CapacityOf(uint32_t class_id) const override;

 private:
  struct Heard {
    TimePoint when;
    Epoch epoch;
    uint64_t used_bytes = 0;
    Epoch fence_epoch;
  };
  struct Ids {
    uint32_t osd = 0;
    uint32_t klass = kFirstUserClass.value;
    uint32_t pool = 1;
    uint32_t rule = 1;
    std::vector<OsdId> joined;
  };

  ClusterKeeper(KvStore& store, Clock& clock)
      : store_(store), clock_(clock), limits_(clock.Now()) {}
  Status Load(const ClusterRecord& record);
  Status Found(const std::string& uuid);
  // Gives `next` a new epoch, makes it durable, then shows it.
  Status Commit(ClusterMap next, Ids ids, const Applied& applied = {});
  Status CommitSame(ClusterMap next, const Applied& applied = {}) {
    return Commit(std::move(next), ids_, applied);
  }
  Result<OsdId> IdOf(const wire::RegisterOsdRequest& request, Ids* ids) const;
  Result<std::vector<OsdId>> Named(const wire::SetOsdRequest& request) const;
  void MarkLiveness(ClusterMap* next, bool* changed);
  void EndReservations(ClusterMap* next, bool* changed);
  static void MarkNearFull(ClusterMap* next, bool* changed);
  // Of the OSDs that are up.
  [[nodiscard]] std::map<OsdId, OsdMeasures> Measures() const;

  KvStore& store_;
  Clock& clock_;
  mutable std::mutex changing_;  // one change at a time; held over the disk
  mutable std::mutex mutex_;     // what is below; taken inside `changing_`, never over the disk
  std::shared_ptr<const ClusterMap> map_;
  std::map<OsdId, Heard> heard_;
  std::map<OsdId, uint64_t> lives_;
  std::map<OsdId, std::shared_ptr<const OsdMeasures>> measures_;
  TimeBook times_;  // has a lock of its own, as the next
  SkewBook skew_;
  LimitBook limits_;
  OnChange on_change_;
  std::function<uint64_t()> being_freed_;
  Ids ids_;                      // under changing_
  std::deque<Applied> applied_;  // under changing_; the last ones, oldest first
};

}  // namespace weir::mds
