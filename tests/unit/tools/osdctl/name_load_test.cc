#include "tools/osdctl/name_load.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

TEST(NameLoadTest, WhatTheMdsTellsIsThere) {
  wire::ClassLoadReply reply;
  reply.set_flows(true);
  reply.add_classes()->set_class_id(16);
  const NameLoad names = NameLoadOf(Status::Ok(), reply);
  EXPECT_EQ(names.missing, "");
  EXPECT_EQ(names.load.classes_size(), 1);
}

TEST(NameLoadTest, AnMdsThatDoesNotAnswerLeavesTheReason) {
  const NameLoad names = NameLoadOf({ErrorCode::kTimedOut, "no contact"}, {});
  EXPECT_EQ(names.missing, "no contact");
}

// Goal: an MDS that ignores the question is not taken for one whom nobody asks for names.
TEST(NameLoadTest, AnMdsOfAVersionBeforeIsNotAnIdleOne) {
  wire::ClassLoadReply reply;
  reply.add_classes()->set_class_id(16);
  const NameLoad names = NameLoadOf(Status::Ok(), reply);
  EXPECT_NE(names.missing.find("version"), std::string::npos) << names.missing;
  EXPECT_EQ(names.load.classes_size(), 0);
}

}  // namespace
}  // namespace weir::osdctl
