// Goal: a range touches each object with one request, and what is written comes back, holes as
// zeros. Method: random ranges of random layouts against a plain string.
#include <gtest/gtest.h>

#include <set>

#include "client/data/object_reader.h"
#include "client/data/object_writer.h"
#include "common/base/prng.h"
#include "common/testing/manual_clock.h"
#include "common/testing/seed.h"
#include "tests/unit/client/fake_osds.h"

namespace weir::client {
namespace {

TEST(ObjectSpanTest, OneSpanPerObjectAndWhatIsWrittenComesBack) {
  Prng prng(weir::testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const uint64_t unit = 4096u << prng.Uniform(0, 2);
    const FileLayout layout =
        LayoutOf(unit, static_cast<uint32_t>(prng.Uniform(1, 5)), unit << prng.Uniform(0, 3));
    testing::ManualClock clock;
    FakeOsds osds;
    osds.immediate = true;
    ObjectIo io(clock, osds, {});
    io.SetMap(MapOf(3));
    const FileTarget target{InodeId(9), ClassId(16), layout};
    std::string model;
    for (int step = 0; step < 20; ++step) {
      const uint64_t offset = prng.Uniform(0, 300'000);
      const uint64_t length = prng.Uniform(1, 100'000);
      std::set<uint64_t> objects;
      const auto spans = MapSpans(layout, offset, length);
      for (const ObjectSpan& span : spans) objects.insert(span.object_index);
      ASSERT_EQ(objects.size(), spans.size());
      std::string bytes(length, '\0');
      for (char& byte : bytes) byte = static_cast<char>(prng.Next());
      if (model.size() < offset + length) model.resize(offset + length);
      model.replace(offset, length, bytes);
      Status written(ErrorCode::kIo);
      WriteObjects(
          io, target,
          PrepareWrite(layout, offset, reinterpret_cast<const uint8_t*>(bytes.data()), length),
          [&](const Result<uint64_t>& grown) { written = grown.status(); });
      ASSERT_TRUE(written.ok());
      const uint64_t from = prng.Uniform(0, model.size() - 1);
      const uint64_t size = prng.Uniform(1, model.size() - from);
      std::string read(size, 'x');
      const uint64_t before = osds.sent;
      ReadObjects(io, target, from, size, [&](const Result<Segments>& data) {
        ASSERT_TRUE(data.ok());
        ASSERT_EQ(TotalSize(*data), size);
        CopyTo(*data, reinterpret_cast<uint8_t*>(read.data()));
      });
      ASSERT_EQ(osds.sent - before, MapSpans(layout, from, size).size());
      ASSERT_EQ(read, model.substr(from, size)) << "round " << round << " step " << step;
    }
    EXPECT_TRUE(osds.crc_matches);
  }
}

TEST(ObjectReaderTest, TheFirstErrorOfAnyObjectIsTheAnswer) {
  testing::ManualClock clock;
  FakeOsds osds;
  ObjectIo io(clock, osds, {});
  io.SetMap(MapOf(3));
  Status status;
  ReadObjects(io, {InodeId(9), ClassId(16), LayoutOf(4096, 4, 4096)}, 0, 16384,
              [&](const Result<Segments>& data) { status = data.status(); });
  ASSERT_EQ(osds.flights.size(), 4u);
  osds.Fail(2, ErrorCode::kIo);
  EXPECT_TRUE(status.ok()) << "answered before all replies were there";
  osds.AnswerAll();
  EXPECT_EQ(status.code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace weir::client
