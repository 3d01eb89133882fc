// InheritingMutex: whoever holds it runs as urgently as the most urgent of those who wait for it.
//
// Threads that run ahead of turns (see short_turns.h) share locks with threads that take turns. One
// of those that is put aside with the lock in its hands would let the other wait until all the rest
// had their turns, milliseconds for what takes a microsecond. The kernel lends it the urgency until
// it lets go.
//
// A std::mutex in every other respect: unique_lock<std::mutex> and condition_variable take it.
// Nearly as cheap while nobody waits. But whoever lets go hands it over to who has waited longest,
// awake or not, so that a lock which many threads want at any time is faster without.
//
// Source: priority inheritance, pthread_mutexattr_setprotocol(3).
#pragma once

#include <pthread.h>

#include <mutex>

namespace weir {

class InheritingMutex : public std::mutex {
 public:
  InheritingMutex() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_destroy(native_handle());
    pthread_mutex_init(native_handle(), &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
};

}  // namespace weir
