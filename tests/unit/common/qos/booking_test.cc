// What contracts take of an OSD, in one currency.
#include "common/qos/booking.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;

SchedulerConfig Osd(uint64_t token_rate) {
  SchedulerConfig config;
  config.token_rate = token_rate;
  return config;
}

TEST(BookingTest, AnOsdIsTakenToDoOneRequestForEvery64KiBOfItsTokenRate) {
  EXPECT_DOUBLE_EQ(Osd(60 * kMiB).EffectiveIopsMax(), 960);
  EXPECT_DOUBLE_EQ(Osd(60 * kMiB).RequestUnit(), 65536);
  SchedulerConfig fast = Osd(60 * kMiB);
  fast.iops_max = 15'360;
  EXPECT_DOUBLE_EQ(fast.RequestUnit(), 4096);
}

TEST(BookingTest, RequestsAreDividedLikeBytes) {
  ClassSpec spec;
  spec.reservation = Reservation{.bytes_per_s = kMiB, .iops = 300};
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 1).total(), 300u * 65536);
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 3).total(), 150u * 65536);
  spec.reservation->scope = ReservationScope::kOsd;
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 3).total(), 300u * 65536);
  spec.reservation->bytes_per_s = 40 * kMiB;  // more than those requests come to
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 3).total(), 40 * kMiB);
}

TEST(BookingTest, ABoundBooksTheRateThatItNeeds) {
  ClassSpec spec;
  spec.service.bound = 20ms;
  const Booking booking = BookingOf(spec, Osd(60 * kMiB), 1);
  EXPECT_NEAR(static_cast<double>(booking.total()) / 65536, 17 / (0.020 - 1.0 / 960), 0.01);
  EXPECT_EQ(booking.worst_case(), booking.total());
  spec.admission = AdmissionKind::kMeasured;
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 1).worst_case(), 0u);
  spec.service.bound = 1ms;  // shorter than one request
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 1).bound, Booking::kImpossible);
}

TEST(BookingTest, SeveralContractsOfAClassBookTheLargest) {
  ClassSpec spec;
  spec.reservation = Reservation{.bytes_per_s = 10 * kMiB};
  spec.disk.type = ClassType::kRentADisk;
  spec.disk.peak = 0.5;
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 1).total(), 30 * kMiB);
  spec.disk.peak_bytes_per_s = 20 * kMiB;
  EXPECT_EQ(BookingOf(spec, Osd(60 * kMiB), 3).total(), 20 * kMiB) << "on each";
}

}  // namespace
}  // namespace weir
