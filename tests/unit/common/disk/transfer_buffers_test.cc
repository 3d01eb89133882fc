#include "common/disk/transfer_buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace weir {
namespace {

constexpr size_t kMiB = 1 << 20;

uintptr_t AddressOf(const Buffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data());
}

TEST(TransferBuffersTest, ALargeBufferLiesInOneHugePage) {
  TransferBuffers buffers;
  std::vector<Buffer> held;
  for (int i = 0; i < 5; ++i) {
    const Buffer& buffer = held.emplace_back(buffers.Get(kMiB));
    EXPECT_EQ(buffer.size(), kMiB);
    EXPECT_TRUE(buffer.IsAligned());
    EXPECT_EQ(AddressOf(buffer) / TransferBuffers::kRegionBytes,
              (AddressOf(buffer) + kMiB - 1) / TransferBuffers::kRegionBytes);
  }
}

// A read of 1 MiB that begins within a block, and larger ones.
TEST(TransferBuffersTest, WhatIsLargerThanHalfAPageHasOneOfItsOwn) {
  TransferBuffers buffers;
  std::vector<Buffer> held;
  std::set<uintptr_t> pages;
  for (const size_t size : {kMiB + 4096, 2 * kMiB, kMiB + 1, 2 * kMiB - 4096, kMiB + 4096}) {
    const Buffer& buffer = held.emplace_back(buffers.Get(size));
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(AddressOf(buffer) % TransferBuffers::kRegionBytes, 0U) << size;
    pages.insert(AddressOf(buffer) / TransferBuffers::kRegionBytes);
  }
  EXPECT_EQ(pages.size(), held.size());
}

TEST(TransferBuffersTest, TwoHalvesShareAPageAndLeaveTheOthersWhole) {
  TransferBuffers buffers;
  const auto page_of = [](const Buffer& buffer) {
    return AddressOf(buffer) / TransferBuffers::kRegionBytes;
  };
  Buffer half = buffers.Get(kMiB);
  Buffer whole = buffers.Get(2 * kMiB);
  Buffer other_half = buffers.Get(kMiB);
  EXPECT_EQ(page_of(half), page_of(other_half));
  EXPECT_NE(page_of(half), page_of(whole));
  const uintptr_t shared = page_of(half);
  half = {};
  EXPECT_NE(page_of(buffers.Get(kMiB + 4096)), shared) << "the other half is in use";
  other_half = {};
  EXPECT_EQ(page_of(buffers.Get(kMiB + 4096)), shared);
}

// Memory is bounded, whatever the sizes are: as many pages, and no more.
TEST(TransferBuffersTest, SoManyPagesAreKeptAndNoMore) {
  TransferBuffers buffers;
  std::set<uintptr_t> addresses;
  const auto fill = [&](size_t size, size_t count) {
    std::vector<Buffer> held;
    for (size_t i = 0; i < count; ++i) {
      held.push_back(buffers.Get(size));
      addresses.insert(AddressOf(held.back()) / TransferBuffers::kRegionBytes);
    }
  };
  fill(2 * kMiB, TransferBuffers::kRegionsMax);
  fill(kMiB, 2 * TransferBuffers::kRegionsMax);
  fill(kMiB + 4096, TransferBuffers::kRegionsMax);
  EXPECT_EQ(addresses.size(), TransferBuffers::kRegionsMax);
}

TEST(TransferBuffersTest, BuffersThatAreInUseAreApartAndFreeOnesAreUsedAgain) {
  TransferBuffers buffers;
  std::vector<Buffer> held;
  std::set<uintptr_t> addresses;
  for (int i = 0; i < 7; ++i) {
    held.push_back(buffers.Get(kMiB));
    std::memset(held.back().data(), i, kMiB);
    addresses.insert(AddressOf(held.back()));
  }
  EXPECT_EQ(addresses.size(), 7U);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(held[i].view(), std::string(kMiB, static_cast<char>(i)));
  held.clear();
  for (int i = 0; i < 7; ++i) {
    held.push_back(buffers.Get(kMiB - 1));
    EXPECT_TRUE(addresses.contains(AddressOf(held.back())));
  }
}

// What does not fit is common memory: small and huge ones, and those that are too many at once.
TEST(TransferBuffersTest, WhateverIsAskedForIsGiven) {
  TransferBuffers buffers;
  std::vector<Buffer> held;
  for (size_t i = 0; i < 2 * TransferBuffers::kRegionsMax + 3; ++i) {
    held.push_back(buffers.Get(kMiB));
    std::memset(held.back().data(), static_cast<int>(i), kMiB);
  }
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(held[i].view(), std::string(kMiB, static_cast<char>(i)));
  }
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, 256 * size_t{1024}, 4 * kMiB}) {
    const Buffer buffer = buffers.Get(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_TRUE(buffer.IsAligned());
    if (size > 0) std::memset(buffer.data(), 1, size);
  }
}

TEST(TransferBuffersTest, ABufferOutlivesWhoGaveIt) {
  Buffer last;
  {
    TransferBuffers buffers;
    last = buffers.Get(kMiB).Slice(4096, 10);
  }
  std::memset(last.data(), 'x', last.size());
  EXPECT_EQ(last.view(), "xxxxxxxxxx");
}

}  // namespace
}  // namespace weir
