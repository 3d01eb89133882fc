#include "tests/crash/cluster/name_prefix.h"

#include <algorithm>
#include <utility>

namespace weir::crash {

NamePrefix::NamePrefix(std::vector<EarlyName> told, std::vector<EarlyName> never_told,
                       TimePoint died)
    : changed_(std::move(told)), died_(died) {
  for (size_t i = 0; i < changed_.size(); ++i) {
    if (i == 0 || changed_[i - 1].order != changed_[i].order) ends_.push_back(i);
    ends_.back() = i + 1;
  }
  told_ = ends_.size();
  for (EarlyName& change : never_told) {
    change.repeated = true;
    changed_.push_back(change);
  }
  if (!never_told.empty()) ends_.push_back(changed_.size());
  for (const EarlyName& change : changed_) {
    const auto known = std::find_if(names_.begin(), names_.end(),
                                    [&](const Name& name) { return name.inode == change.inode; });
    if (known == names_.end()) {
      names_.push_back({change.inode, change.before, change.place});
    } else {
      known->last = change.place;
    }
  }
  most_ = ends_.size();
  RaiseLeast(died);
}

void NamePrefix::RaiseLeast(TimePoint now) {
  for (size_t k = 0; k < told_; ++k) {
    if (changed_[ends_[k] - 1].IsDurableBy(now)) least_ = std::max(least_, k + 1);
  }
}

size_t NamePrefix::LeastNow() const {
  size_t least = least_;
  for (size_t k = least_; k < told_; ++k) {
    if (!changed_[ends_[k] - 1].repeated) least = k + 1;
  }
  return least;
}

void NamePrefix::MdsDied(TimePoint now) {
  RaiseLeast(now);
  for (EarlyName& change : changed_) change.repeated = change.repeated || change.when <= now;
}

uint64_t NamePrefix::ValueAfter(const Name& name, size_t changes) const {
  for (size_t i = changes == 0 ? 0 : ends_[changes - 1]; i-- > 0;) {
    if (changed_[i].inode == name.inode) return name.inode->ValueAt(changed_[i].place);
  }
  return name.inode->ValueAt(name.before);
}

std::string NamePrefix::Saw(const Register<uint64_t>& inode, uint64_t value, TimePoint since) {
  const auto name = std::find_if(names_.begin(), names_.end(),
                                 [&](const Name& one) { return one.inode == &inode; });
  const bool speaks = name != names_.end() && since > died_ && inode.last() == name->last;
  if (!speaks) return "";
  const size_t least = LeastNow();
  size_t fewest = SIZE_MAX, most = 0;
  bool is_prefix = false;
  for (size_t k = least_; k <= most_; ++k) {
    if (ValueAfter(*name, k) != value) continue;
    fewest = std::min(fewest, k);
    most = k;
    is_prefix = is_prefix || k >= least;
  }
  if (!is_prefix) {
    ++informed_;
    std::string text = "inode " + std::to_string(value) +
                       " is no prefix of what a dead user did, of whose " + std::to_string(told_) +
                       " last changes " + std::to_string(least) + " to " + std::to_string(most_) +
                       " are left, this name with";
    for (size_t k = 0; k <= ends_.size(); ++k) {
      text += " " + std::to_string(ValueAfter(*name, k));
    }
    return text;
  }
  if (most >= told_) most = ends_.size();  // what he was not told of may come yet
  if (fewest != least_ || most != most_) ++informed_;
  least_ = fewest;
  most_ = most;
  return "";
}

}  // namespace weir::crash
