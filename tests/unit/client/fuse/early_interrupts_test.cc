#include "client/fuse/early_interrupts.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

TEST(EarlyInterruptsTest, ARequestThatComesAfterItsInterruptIsInterruptedOnce) {
  EarlyInterrupts interrupts;
  interrupts.Remember(42);
  interrupts.Remember(44);
  EXPECT_FALSE(interrupts.Take(43));
  EXPECT_TRUE(interrupts.Take(44));
  EXPECT_FALSE(interrupts.Take(44));
  EXPECT_TRUE(interrupts.Take(42));
}

TEST(EarlyInterruptsTest, ThoseOfAnsweredRequestsDoNotPileUp) {
  EarlyInterrupts interrupts;
  for (uint64_t i = 0; i <= EarlyInterrupts::kMost; ++i) interrupts.Remember(2 * i);
  EXPECT_FALSE(interrupts.Take(0)) << "the oldest has made room";
  EXPECT_TRUE(interrupts.Take(2));
  EXPECT_TRUE(interrupts.Take(2 * EarlyInterrupts::kMost));
}

}  // namespace
}  // namespace weir::client
