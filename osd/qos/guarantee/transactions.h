// Transactions: the second level below a class (AQuA §6, named there as future work; RULES.md
// §3.6). A transaction (a user, a file, a batch job) has a part of its class's promise as a leaf of
// its own:
//
//   root ── class leaf R ──┬─ transaction 1, leaf R1
//                          ├─ transaction 2, leaf R2          R1 + R2 <= R
//                          └─ the rest of the class, no leaf
//
// Own tokens of the transaction pay first, then the class's, then the root's; the level that pays
// and all levels above it are drained. Among transactions that can pay, the earliest head goes
// first; what the class pays goes to its requests in order of arrival, whoever they belong to.
// A transaction's promise holds per OSD.
//
// Cost: O(transactions of the class). Threads: the scheduler's owner. Ownership: holds pointers to
// the class's waiting requests.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/qos/qos_config.h"
#include "osd/qos/guarantee/token_bucket.h"
#include "osd/qos/request.h"

namespace weir::osd::qos {

class Transactions {
 public:
  // Promises from now on; leaves that stay keep their level. Waiting requests are forgotten: tell
  // of them again, in order of arrival.
  void Configure(const std::vector<TransactionSpec>& specs, TimePoint now);

  // A request joined the class's queue, or left it (released or cancelled).
  void Arrived(Request* request, TimePoint now);
  void Left(const Request& request);

  // When the first of them can pay for its own head, Max if only an arrival can help; and the
  // earliest head that its transaction can pay for now, or none.
  struct Due {
    TimePoint at = TimePoint::Max();
    Request* owed = nullptr;
  };
  [[nodiscard]] Due Next(TimePoint now);
  // This request is being released as owed: its transaction pays, if it can.
  void Take(const Request& request, TimePoint now);

 private:
  struct Transaction {
    uint64_t rate = 0;
    int64_t largest_tokens = 0;
    std::optional<TokenBucket> leaf;
    std::deque<Request*> waiting;  // in order of arrival
  };
  // Its user's turn is the class's flow order's to give; who is in none goes in order of arrival.
  static Request* HeadOf(const Transaction& transaction);

  std::unordered_map<uint32_t, Transaction> transactions_;
};

}  // namespace weir::osd::qos
