#include "common/replication/op_ids.h"

#include "common/base/check.h"

namespace weir::replication {

uint64_t OpIds::Begin(const ObjectId& object) {
  const uint64_t number = ++last_;
  open_.insert(open_.end(), number);
  of_objects_.emplace(object, number);
  return number;
}

void OpIds::End(const ObjectId& object, uint64_t number) {
  WEIR_CHECK(of_objects_.erase({object, number}) == 1, "an operation ends that is not open");
  open_.erase(number);
}

IdFloors OpIds::FloorsOf(const ObjectId& object) const {
  IdFloors floors{last_ + 1, last_ + 1};
  if (!open_.empty()) floors.session = *open_.begin();
  const auto first = of_objects_.lower_bound({object, 0});
  if (first != of_objects_.end() && first->first == object) floors.object = first->second;
  return floors;
}

}  // namespace weir::replication
