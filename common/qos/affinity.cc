#include "common/qos/affinity.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

constexpr size_t kCompared = 64;  // coordinators, those that use the most

double SumOf(const CoordinatorUse& one) {
  double sum = 0;
  for (const auto& [osd, use] : one.osds) sum += use;
  return sum;
}

bool HaveOneInCommon(const CoordinatorUse& a, const CoordinatorUse& b) {
  return std::any_of(a.osds.begin(), a.osds.end(),
                     [&b](const auto& one) { return b.osds.contains(one.first); });
}

std::string OsdsText(const CoordinatorUse& one) {
  std::string text;
  for (const auto& [osd, use] : one.osds) {
    text += (text.empty() ? "osd." : ", osd.") + std::to_string(osd.value);
  }
  return text;
}

std::string Sentence(const CoordinatorUse& a, const CoordinatorUse& b) {
  return a.name + " uses only " + OsdsText(a) + " and " + b.name + " only " + OsdsText(b) +
         ": neither OSD hears what the other gave, so the class has its share, promise and limit "
         "on each anew; spread its files over all OSDs (user.weir.layout.stripe_count) or use it "
         "from one mount";
}

}  // namespace

std::optional<std::string> AffinityAnomaly(std::vector<CoordinatorUse> coordinators) {
  std::erase_if(coordinators, [](const CoordinatorUse& one) { return one.osds.empty(); });
  std::stable_sort(
      coordinators.begin(), coordinators.end(),
      [](const CoordinatorUse& a, const CoordinatorUse& b) { return SumOf(a) > SumOf(b); });
  const size_t count = std::min(coordinators.size(), kCompared);
  for (size_t j = 1; j < count; ++j) {
    for (size_t i = 0; i < j; ++i) {
      const CoordinatorUse *a = &coordinators[i], *b = &coordinators[j];
      if (HaveOneInCommon(*a, *b)) continue;
      if (b->osds.begin()->first < a->osds.begin()->first) std::swap(a, b);
      return Sentence(*a, *b);
    }
  }
  return std::nullopt;
}

}  // namespace weir
