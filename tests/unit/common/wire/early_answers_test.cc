// Goal: a mount keeps what the MDS may answer early to it, and nothing else.
#include "common/wire/early_answers.h"

#include <gtest/gtest.h>

namespace weir::wire {
namespace {

TEST(EarlyAnswersTest, NamesEverywhereAndAttributesOnlyAlone) {
  for (const uint32_t method : {MDS_CREATE, MDS_TMPFILE, MDS_MKNOD, MDS_LINK, MDS_UNLINK, MDS_RMDIR,
                                MDS_RENAME, MDS_SETXATTR, MDS_REMOVEXATTR}) {
    EXPECT_EQ(EarlyAnswerOf(method), EarlyAnswer::kAlways) << method;
  }
  EXPECT_EQ(EarlyAnswerOf(MDS_SETATTR), EarlyAnswer::kAlone);
  EXPECT_EQ(EarlyAnswerOf(MDS_WROTE), EarlyAnswer::kAlone);
}

TEST(EarlyAnswersTest, WhatARestartHasToKnowNever) {
  for (const uint32_t method : {MDS_NONE, MDS_OPEN, MDS_RELEASE, MDS_ALLOCATED, MDS_GROW, MDS_LOCK,
                                MDS_COMMIT, MDS_REPLAY, MDS_LOOKUP, MDS_GETATTR}) {
    EXPECT_EQ(EarlyAnswerOf(method), EarlyAnswer::kNever) << method;
  }
}

}  // namespace
}  // namespace weir::wire
