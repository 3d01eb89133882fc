#include "client/qos/delay_tracker.h"

namespace weir::client {

int64_t DelayTracker::OnSend(ClassId class_id, OsdId osd, int64_t cost) {
  Stream& stream = streams_[class_id];
  int64_t& mark = stream.marks[osd];  // 0 for an OSD never used: A3
  const int64_t delay = stream.cumulative - mark;
  stream.cumulative += cost;
  mark = stream.cumulative;
  return delay;
}

int64_t DelayTracker::Cumulative(ClassId class_id) const {
  const auto stream = streams_.find(class_id);
  return stream == streams_.end() ? 0 : stream->second.cumulative;
}

int64_t DelayTracker::Unsent(ClassId class_id, OsdId osd) const {
  const auto stream = streams_.find(class_id);
  if (stream == streams_.end()) return 0;
  const auto mark = stream->second.marks.find(osd);
  return stream->second.cumulative - (mark == stream->second.marks.end() ? 0 : mark->second);
}

std::vector<OsdId> DelayTracker::OsdsOf(ClassId class_id) const {
  std::vector<OsdId> osds;
  const auto stream = streams_.find(class_id);
  if (stream == streams_.end()) return osds;
  for (const auto& [osd, mark] : stream->second.marks) osds.push_back(osd);
  return osds;
}

size_t DelayTracker::marks() const {
  size_t count = 0;
  for (const auto& [id, stream] : streams_) count += stream.marks.size();
  return count;
}

void DelayTracker::Forget(ClassId class_id) {
  streams_.erase(class_id);
}

}  // namespace weir::client
