#include "common/disk/model/ssd.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

namespace weir::model {
namespace {

class SsdDisk final : public DiskModel {
 public:
  SsdDisk(EventQueue* events, const SsdModel& model)
      : events_(events), model_(model), channels_(static_cast<size_t>(model.channels)) {}

  void Submit(const DiskIo& io, Done done) override {
    switch (io.kind) {
      case DiskIo::Kind::kRead:
        return Read(io, std::move(done));
      case DiskIo::Kind::kWrite:
        waiting_.push_back({io, std::move(done)});
        return TakeWrites();
      case DiskIo::Kind::kFlush:
        return Flush(std::move(done));
    }
  }

  // Programs end thousands of times a second, mostly with nobody waiting for room in the buffer.
  Alarm NextAlarm(const EventQueue& events) override {
    while (!answers_.empty() && answers_.top() <= events.now()) answers_.pop();
    const bool somebody_waits = !waiting_.empty() || !flushes_.empty();
    return {answers_.empty() ? TimePoint::Max() : answers_.top(),
            somebody_waits ? events.next() : TimePoint::Max()};
  }

 private:
  struct Channel {
    TimePoint read_free;     // of reads, when they go first
    TimePoint program_free;  // of everything else
    Duration delayed{0};     // how much reads have put programs off, in all
  };
  struct Waiting {
    DiskIo io;
    Done done;
  };
  // When the pages of one write will be programmed, unless reads get in between.
  struct Programs {
    std::vector<TimePoint> end;
    std::vector<Duration> delayed;
  };

  void Answer(Duration after, Duration worked, Done done) {
    answers_.push(events_->now() + after);
    events_->After(after, [done = std::move(done), worked] { done(worked); });
  }

  [[nodiscard]] uint64_t PagesOf(const DiskIo& io) const {
    return std::max<uint64_t>(1, (io.bytes + model_.page - 1) / model_.page);
  }
  [[nodiscard]] Duration PageTime(uint64_t index, double seconds) const {
    return FromSeconds(seconds + (index == 0 ? model_.request_s : 0));
  }

  // A page of a read on its channel; returns when it is read.
  TimePoint ReadPage(Channel& channel, Duration time) {
    const TimePoint now = events_->now();
    if (!model_.read_first) {
      channel.program_free = std::max(channel.program_free, now) + time;
      return channel.program_free;
    }
    const bool programming = channel.program_free > now;
    if (programming && channel.read_free <= now) time += FromSeconds(model_.suspend_s);
    channel.read_free = std::max(channel.read_free, now) + time;
    if (programming) {
      channel.program_free += time;
      channel.delayed += time;
    }
    return channel.read_free;
  }

  void Read(const DiskIo& io, Done done) {
    const uint64_t first = io.offset / model_.page;
    TimePoint end = events_->now();
    for (uint64_t i = 0; i < PagesOf(io); ++i) {
      end = std::max(
          end, ReadPage(channels_[(first + i) % channels_.size()], PageTime(i, model_.read_s)));
    }
    end += FromSeconds(model_.overhead_s);
    Answer(end - events_->now(), end - events_->now(), std::move(done));
  }

  Programs Program(const DiskIo& io) {
    const uint64_t first = io.offset / model_.page;
    for (uint64_t i = 0; i < PagesOf(io); ++i) {
      Channel& channel = channels_[(first + i) % channels_.size()];
      const TimePoint from = std::max({channel.program_free, channel.read_free, events_->now()});
      channel.program_free = from + PageTime(i, model_.program_s);
    }
    Programs programs;
    for (uint64_t i = 0; i < std::min<uint64_t>(PagesOf(io), channels_.size()); ++i) {
      const Channel& channel = channels_[(first + i) % channels_.size()];
      programs.end.push_back(channel.program_free);
      programs.delayed.push_back(channel.delayed);
    }
    return programs;
  }

  // Frees the buffer when the last page is programmed, looking again if reads were in between.
  void WhenProgrammed(uint64_t first, uint64_t bytes, Programs programs) {
    TimePoint end;
    for (size_t i = 0; i < programs.end.size(); ++i) {
      const Duration delayed = channels_[(first + i) % channels_.size()].delayed;
      programs.end[i] += delayed - programs.delayed[i];
      programs.delayed[i] = delayed;
      end = std::max(end, programs.end[i]);
    }
    if (end > events_->now()) {
      events_->At(end, [this, first, bytes, programs = std::move(programs)]() mutable {
        WhenProgrammed(first, bytes, std::move(programs));
      });
      return;
    }
    buffered_ -= bytes;
    programmed_ += bytes;
    EndFlushes();
    TakeWrites();
  }

  void TakeWrites() {
    while (!waiting_.empty()) {
      const uint64_t bytes = PagesOf(waiting_.front().io) * model_.page;
      if (buffered_ > 0 && buffered_ + bytes > model_.buffer) return;
      Waiting write = std::move(waiting_.front());
      waiting_.pop_front();
      buffered_ += bytes;
      taken_ += bytes;
      const Duration time =
          FromSeconds(model_.overhead_s + static_cast<double>(bytes) / model_.bus_bytes_per_s);
      Answer(time, time, std::move(write.done));
      WhenProgrammed(write.io.offset / model_.page, bytes, Program(write.io));
    }
  }

  // Writes are programmed in nearly the order they were taken; a flush waits until as many bytes
  // are, which is when the buffer has turned over once.
  void Flush(Done done) {
    flushes_.push_back(
        {model_.protected_buffer ? programmed_ : taken_, events_->now(), std::move(done)});
    EndFlushes();
  }
  void EndFlushes() {
    while (!flushes_.empty() && flushes_.front().until <= programmed_) {
      const Duration overhead = FromSeconds(model_.overhead_s);
      const Duration worked = events_->now() - flushes_.front().since + overhead;
      Answer(overhead, worked, std::move(flushes_.front().done));
      flushes_.pop_front();
    }
  }

  struct WaitingFlush {
    uint64_t until;
    TimePoint since;
    Done done;
  };

  EventQueue* const events_;
  const SsdModel model_;
  std::vector<Channel> channels_;
  std::priority_queue<TimePoint, std::vector<TimePoint>, std::greater<>> answers_;  // to come
  std::deque<Waiting> waiting_;
  std::deque<WaitingFlush> flushes_;
  uint64_t buffered_ = 0;
  uint64_t taken_ = 0, programmed_ = 0;  // bytes, since the beginning
};

double PageSeconds(const SsdModel& model, double bytes_per_s) {
  return model.channels * static_cast<double>(model.page) / bytes_per_s;
}

}  // namespace

SsdModel Ssd200() {
  SsdModel model;
  SetReadRate(&model, 200e6);
  SetWriteRate(&model, 200e6);
  model.read_first = true;
  model.protected_buffer = true;
  return model;
}

void SetReadRate(SsdModel* model, double bytes_per_s) {
  model->read_s = PageSeconds(*model, bytes_per_s);
}

void SetWriteRate(SsdModel* model, double bytes_per_s) {
  model->program_s = PageSeconds(*model, bytes_per_s);
}

void SetChannels(SsdModel* model, int channels) {
  const double part = static_cast<double>(channels) / model->channels;
  model->read_s *= part;
  model->program_s *= part;
  model->request_s *= part;
  model->channels = channels;
}

void SetIops(SsdModel* model, double iops) {
  model->request_s = std::max(0.0, model->channels / iops - model->read_s);
}

std::unique_ptr<DiskModel> MakeSsd(EventQueue* events, const SsdModel& model) {
  return std::make_unique<SsdDisk>(events, model);
}

}  // namespace weir::model
