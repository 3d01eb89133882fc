#include "tests/crash/replication/history.h"

#include <algorithm>

namespace weir::crash::replication {
namespace {

std::string Name(const OpId& id) {
  return "operation " + std::to_string(id.session) + "/" + std::to_string(id.number);
}

bool IsRead(const Request& request) {
  return request.kind == RequestKind::kRead;
}

}  // namespace

void History::Asked(const Request& request, TimePoint when) {
  events_[request.id] = {request, when, std::nullopt, {}};
}

void History::Told(const OpId& id, const Reply& reply, TimePoint when) {
  Event& event = events_.at(id);
  if (event.told.has_value()) return;
  event.told = when;
  event.reply = reply;
  if (IsRead(event.request)) {
    ++reads_;
  } else {
    ++(reply.status == ErrorCode::kOk ? acknowledged_ : refused_);
  }
}

std::string History::Published(const Operation& operation) {
  const auto [known, first] = versions_.try_emplace(operation.id, operation.version);
  if (known->second != operation.version) return Name(operation.id) + " was carried out twice";
  const auto [at, fresh] = published_[operation.object].try_emplace(operation.version, operation);
  if (at->second.id != operation.id) {
    return Name(operation.id) + " and another one are the same version";
  }
  return "";
}

std::vector<History::State> History::StatesOf(ObjectId object) const {
  std::vector<State> states{{}};
  const auto found = published_.find(object);
  if (found == published_.end()) return states;
  for (const auto& [version, operation] : found->second) {
    State next = states.back();
    next.version = version;
    if (operation.kind == OpKind::kDelete) {
      next.bytes.reset();
      next.data_version = {};
    } else if (operation.kind == OpKind::kWrite) {
      std::string bytes = next.bytes.value_or("");
      const uint64_t end = operation.offset + operation.bytes.size();
      if (bytes.size() < end) bytes.resize(end, '\0');
      bytes.replace(operation.offset, operation.bytes.size(), operation.bytes);
      next.bytes = std::move(bytes);
      next.data_version = version;
    }
    states.push_back(std::move(next));
  }
  return states;
}

std::optional<std::string> History::FinalBytes(ObjectId object) const {
  return StatesOf(object).back().bytes;
}

std::string History::JudgeChange(const Event& event) const {
  const OpId& id = event.request.id;
  const auto version = versions_.find(id);
  if (version == versions_.end()) {
    const bool never = event.reply.status == ErrorCode::kNoSpace;
    return never ? "" : Name(id) + " was answered and never published";
  }
  const Operation& operation = published_.at(event.request.object).at(version->second);
  const bool refusal = operation.kind == OpKind::kRefusal;
  if (refusal != (event.reply.status != ErrorCode::kOk)) {
    return Name(id) + " was answered otherwise than it ended";
  }
  if (event.reply.version != version->second) return Name(id) + " was told another version";
  if (!refusal && event.reply.offset != operation.offset) return Name(id) + " went elsewhere";
  if (!event.request.expected.has_value()) return "";
  Version before;
  for (const State& state : StatesOf(event.request.object)) {
    if (state.version < version->second) before = state.data_version;
  }
  const bool met = before == *event.request.expected;
  const bool other_reason = event.reply.status == ErrorCode::kNoSpace;
  if (met == refusal && !other_reason) return Name(id) + " was judged by another version";
  return "";
}

std::string History::JudgeObject(ObjectId object, const std::vector<const Event*>& events) const {
  const std::vector<State> states = StatesOf(object);
  const auto index_of = [&](const Version& version) {
    size_t i = 0;
    while (states[i].version != version) ++i;
    return i;
  };
  std::vector<std::pair<const Event*, size_t>> placed;  // in order of their answers
  for (const Event* event : events) {
    const Request& request = event->request;
    size_t earliest = 0;
    for (const auto& [other, index] : placed) {
      if (*other->told < event->asked) earliest = std::max(earliest, index);
    }
    if (!IsRead(request)) {
      const std::string wrong = JudgeChange(*event);
      if (!wrong.empty()) return wrong;
      if (!versions_.contains(request.id)) continue;
      const size_t index = index_of(event->reply.version);
      if (index <= earliest) return Name(request.id) + " is older than what was known before it";
      placed.emplace_back(event, index);
      continue;
    }
    const auto fits = [&](const State& state) {
      if (state.bytes.has_value() != (event->reply.status == ErrorCode::kOk)) return false;
      if (!state.bytes.has_value()) return true;
      if (state.bytes->size() != event->reply.size) return false;
      if (request.offset >= state.bytes->size()) return event->reply.bytes.empty();
      return state.bytes->substr(request.offset, request.length) == event->reply.bytes;
    };
    size_t index = earliest;
    while (index < states.size() && !fits(states[index])) ++index;
    if (index == states.size()) {
      const bool ever = std::any_of(states.begin(), states.end(), fits);
      return "read " + std::to_string(request.id.session) + "/" +
             std::to_string(request.id.number) +
             (ever ? " went back in time" : " saw what never was");
    }
    placed.emplace_back(event, index);
  }
  return "";
}

std::string History::Judge() const {
  std::map<ObjectId, std::vector<const Event*>> by_object;
  for (const auto& [id, event] : events_) {
    if (event.told.has_value()) by_object[event.request.object].push_back(&event);
  }
  for (auto& [object, events] : by_object) {
    std::stable_sort(events.begin(), events.end(),
                     [](const Event* a, const Event* b) { return *a->told < *b->told; });
    const std::string wrong = JudgeObject(object, events);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace weir::crash::replication
