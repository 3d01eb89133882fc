#include "osd/qos/guarantee/transactions.h"

#include <algorithm>

namespace weir::osd::qos {

void Transactions::Configure(const std::vector<TransactionSpec>& specs, TimePoint now) {
  for (auto& [id, transaction] : transactions_) {
    transaction.rate = 0;
    transaction.waiting.clear();
  }
  for (const TransactionSpec& spec : specs) transactions_[spec.id].rate = spec.bytes_per_s;
  std::erase_if(transactions_, [](const auto& entry) { return entry.second.rate == 0; });
  for (auto& [id, transaction] : transactions_) {
    SetLeaf(&transaction.leaf, transaction.rate, transaction.largest_tokens, now);
  }
}

void Transactions::Arrived(Request* request, TimePoint now) {
  const auto found = transactions_.find(request->transaction);
  if (found == transactions_.end()) return;  // the rest of the class
  Transaction& transaction = found->second;
  transaction.waiting.push_back(request);
  const int64_t tokens = TokensOf(request->bytes);
  if (tokens <= transaction.largest_tokens) return;
  transaction.largest_tokens = tokens;
  SetLeaf(&transaction.leaf, transaction.rate, tokens, now);
}

void Transactions::Left(const Request& request) {
  const auto found = transactions_.find(request.transaction);
  if (found == transactions_.end()) return;
  std::deque<Request*>& waiting = found->second.waiting;
  const auto at = std::find(waiting.begin(), waiting.end(), &request);  // nearly always the first
  if (at != waiting.end()) waiting.erase(at);
}

Request* Transactions::HeadOf(const Transaction& transaction) {
  Request* const oldest = transaction.waiting.front();
  if (oldest->in_flow.opener == nullptr) return oldest;
  Request* const next = Request::Of(FlowOrder::FirstOfUser(oldest->in_flow));
  return next->transaction == oldest->transaction ? next : oldest;
}

Transactions::Due Transactions::Next(TimePoint now) {
  Due due;
  for (auto& [id, transaction] : transactions_) {
    if (!transaction.leaf || transaction.waiting.empty()) continue;
    Request* const head = HeadOf(transaction);
    const TimePoint at = transaction.leaf->CoversAt(TokensOf(head->bytes), now);
    due.at = std::min(due.at, at);
    const bool earlier = due.owed == nullptr || head->sequence < due.owed->sequence;
    if (at <= now && earlier) due.owed = head;
  }
  return due;
}

void Transactions::Take(const Request& request, TimePoint now) {
  const auto found = transactions_.find(request.transaction);
  if (found == transactions_.end() || !found->second.leaf) return;
  TokenBucket& leaf = *found->second.leaf;
  leaf.Refill(now);
  const int64_t tokens = TokensOf(request.bytes);
  if (leaf.Covers(tokens)) leaf.Take(tokens);
}

}  // namespace weir::osd::qos
