#include "tests/crash/cluster/name_prefix.h"

#include <algorithm>
#include <utility>

namespace weir::crash {

NamePrefix::NamePrefix(std::vector<EarlyName> told, TimePoint died)
    : told_(std::move(told)), died_(died) {
  for (size_t i = 0; i < told_.size(); ++i) {
    const EarlyName& change = told_[i];
    if (i == 0 || told_[i - 1].order != change.order) ends_.push_back(i);
    ends_.back() = i + 1;
    const auto known = std::find_if(names_.begin(), names_.end(),
                                    [&](const Name& name) { return name.inode == change.inode; });
    if (known == names_.end()) {
      names_.push_back({change.inode, change.before, change.place, change.inode->last()});
    } else {
      known->told = change.place;
    }
  }
  most_ = ends_.size();
}

void NamePrefix::MdsDied(TimePoint now) {
  for (size_t k = 0; k < ends_.size(); ++k) {
    EarlyName& last = told_[ends_[k] - 1];
    if (!last.repeated && last.DurableAt() < now) least_ = std::max(least_, k + 1);
    last.repeated = last.repeated || last.when <= now;
  }
  least_ = std::min(least_, most_);
}

uint64_t NamePrefix::ValueAfter(const Name& name, size_t changes) const {
  for (size_t i = changes == 0 ? 0 : ends_[changes - 1]; i-- > 0;) {
    if (told_[i].inode == name.inode) return name.inode->ValueAt(told_[i].place);
  }
  return name.inode->ValueAt(name.before);
}

std::string NamePrefix::Saw(const Register<uint64_t>& inode, uint64_t value, TimePoint since) {
  const auto name = std::find_if(names_.begin(), names_.end(),
                                 [&](const Name& one) { return one.inode == &inode; });
  const bool speaks = name != names_.end() && since > died_ && inode.last() == name->last;
  if (!speaks) return "";
  size_t fewest = SIZE_MAX, most = 0;
  const auto fits = [&](size_t changes) {
    fewest = std::min(fewest, changes);
    most = std::max(most, changes);
  };
  for (size_t k = least_; k <= most_; ++k) {
    if (ValueAfter(*name, k) == value) fits(k);
  }
  // What he had on its way came after all the others.
  for (size_t i = name->told + 1; i <= name->last && most_ == ends_.size(); ++i) {
    if (inode.ValueAt(i) == value) fits(most_);
  }
  if (fewest == SIZE_MAX) {
    std::string text = "inode " + std::to_string(value) +
                       " is no prefix of what a dead user did, of whose " +
                       std::to_string(ends_.size()) + " last changes " + std::to_string(least_) +
                       " to " + std::to_string(most_) + " are left, this name with";
    for (size_t k = 0; k <= ends_.size(); ++k) {
      text += " " + std::to_string(ValueAfter(*name, k));
    }
    return text;
  }
  least_ = fewest;
  most_ = most;
  return "";
}

}  // namespace weir::crash
