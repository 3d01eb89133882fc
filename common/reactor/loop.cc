#include "common/reactor/loop.h"

#include <future>
#include <utility>

namespace weir {

void RunInLoop(Loop& loop, Loop::Task task) {
  if (loop.InLoop()) return task();
  loop.Post(std::move(task));
}

void RunInLoopAndWait(Loop& loop, const Loop::Task& task) {
  if (loop.InLoop()) return task();
  std::promise<void> ended;
  loop.Post([&] {
    task();
    ended.set_value();
  });
  ended.get_future().wait();
}

}  // namespace weir
