// RequestList: a FIFO of requests linked through the requests themselves, so that queueing,
// cancelling and moving a whole queue allocate nothing.
//
// A request is in at most one list. Threads: the scheduler's owner. Ownership: none.
#pragma once

#include "common/base/check.h"
#include "osd/qos/request.h"

namespace weir::osd::qos {

class RequestList {
 public:
  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] Request* front() const { return head_; }
  [[nodiscard]] Request* back() const { return tail_; }

  void PushBack(Request* request) { InsertBefore(nullptr, request); }
  // Requires: `request` is in this list.
  void MoveToFront(Request* request) {
    if (request == head_) return;
    Remove(request);
    InsertBefore(head_, request);
  }

  // Requires: `request` is in this list.
  void Remove(Request* request) {
    (request->previous == nullptr ? head_ : request->previous->next) = request->next;
    (request->next == nullptr ? tail_ : request->next->previous) = request->previous;
    request->previous = request->next = nullptr;
  }

  Request* PopFront() {
    WEIR_CHECK(head_ != nullptr, "pop from an empty queue");
    Request* request = head_;
    Remove(request);
    return request;
  }

 private:
  void InsertBefore(Request* at, Request* request) {
    request->next = at;
    request->previous = at == nullptr ? tail_ : at->previous;
    (request->previous == nullptr ? head_ : request->previous->next) = request;
    (at == nullptr ? tail_ : at->previous) = request;
  }

  Request* head_ = nullptr;
  Request* tail_ = nullptr;
};

}  // namespace weir::osd::qos
