#include "common/disk/aio_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <latch>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/prng.h"
#include "common/disk/block_device.h"

namespace weir {
namespace {

// In the working directory: temporary directories may not know O_DIRECT.
class AioReaderTest : public ::testing::Test {
 protected:
  AioReaderTest() {
    WEIR_CHECK(CreateImage(path_, 1 << 20).ok(), "an image");
    fd_ = open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    Buffer block = Buffer::Aligned(kBlockSize);
    for (uint8_t i = 0; i < 64; ++i) {
      std::fill_n(block.data(), kBlockSize, i);
      WEIR_CHECK(pwrite(fd_, block.data(), kBlockSize, i * kBlockSize) == kBlockSize, "a block");
    }
  }
  ~AioReaderTest() override {
    close(fd_);
    std::filesystem::remove(path_);
  }

  struct OneRead {
    Buffer to = Buffer::Aligned(kBlockSize);
    int64_t result = 0;
  };
  const std::string path_ = "weir_image_" + std::to_string(RandomSeed());
  int fd_ = -1;
};

TEST_F(AioReaderTest, AnswersEachWithWhatIsThere) {
  std::vector<OneRead> reads(64);
  std::latch left(64);
  const auto reader = AioReader::Start([&left](void* request, int64_t result) {
    static_cast<OneRead*>(request)->result = result;
    left.count_down();
  });
  ASSERT_NE(reader, nullptr);
  for (size_t i = 0; i < reads.size(); ++i) {
    ASSERT_TRUE(reader->Read(fd_, i * kBlockSize, reads[i].to.data(), kBlockSize, &reads[i]));
  }
  left.wait();
  for (size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(reads[i].result, kBlockSize);
    EXPECT_EQ(reads[i].to.data()[kBlockSize - 1], i);
  }
}

TEST_F(AioReaderTest, PassesShortAnswersOnAndTakesNothingItCannotRead) {
  OneRead read;
  std::latch left(1);
  const auto reader = AioReader::Start([&left](void* request, int64_t result) {
    static_cast<OneRead*>(request)->result = result;
    left.count_down();
  });
  ASSERT_NE(reader, nullptr);
  EXPECT_FALSE(reader->Read(-1, 0, read.to.data(), kBlockSize, &read));
  ASSERT_TRUE(reader->Read(fd_, 1 << 20, read.to.data(), kBlockSize, &read));  // behind the end
  left.wait();
  EXPECT_EQ(read.result, 0);
}

TEST_F(AioReaderTest, EndsWithoutHavingBeenUsed) {
  EXPECT_NE(AioReader::Start([](void*, int64_t) {}), nullptr);
}

}  // namespace
}  // namespace weir
