#include "tools/sim/devices/modelled.h"

#include "tools/sim/devices/hdd.h"
#include "tools/sim/devices/ssd.h"

namespace weir::sim {
namespace {

class ModelDevice final : public Device {
 public:
  ModelDevice(EventQueue* events, std::unique_ptr<model::DiskModel> disk)
      : Device(events), disk_(std::move(disk)) {}

  void Submit(Job* job) override {
    using Kind = model::DiskIo::Kind;
    const Kind kind = job->io.op == osd::qos::OpKind::kWrite ? Kind::kWrite : Kind::kRead;
    disk_->Submit({kind, job->io.lba, job->io.bytes},
                  [this, job](Duration worked) { FinishAt(events().now(), worked, job); });
  }

 private:
  const std::unique_ptr<model::DiskModel> disk_;
};

}  // namespace

DeviceFactory Modelled(ModelMaker make) {
  return [make = std::move(make)](EventQueue* events, Prng prng) {
    return std::make_unique<ModelDevice>(events, make(events, prng));
  };
}

DeviceFactory Hdd(const HddModel& model) {
  return Raid0(model, 1, model.capacity);
}

DeviceFactory Raid0(const HddModel& model, int disks, uint64_t stripe_unit) {
  return Modelled([=](EventQueue* events, Prng prng) {
    return model::MakeHdd(events, model, disks, stripe_unit, prng);
  });
}

DeviceFactory Ssd(const SsdModel& model) {
  return Modelled([=](EventQueue* events, Prng) { return model::MakeSsd(events, model); });
}

}  // namespace weir::sim
