#include "tools/osdctl/user_part.h"

#include <gtest/gtest.h>

namespace weir::osdctl {
namespace {

wire::ClassInfo Gold() {
  wire::ClassInfo gold;
  gold.set_name("gold");
  gold.mutable_reservation()->set_bytes_per_s(200);
  wire::ReservationInfo::User* part = gold.mutable_reservation()->add_users();
  part->set_uid(1001);
  part->set_bytes_per_s(50);
  return gold;
}

TEST(UserPartTest, AnMdsThatSaysWhoseItIsHasSeenIt) {
  EXPECT_TRUE(CheckPartIsSeen(Gold(), 1001, 50).ok());
}

// Goal: `reserve C --user U` never becomes the promise of the class. Method: what an MDS of a
// version before answers: the class with the user's part as its promise.
TEST(UserPartTest, AnMdsThatDoesNotKnowOfUsersIsRefused) {
  wire::ClassInfo gold = Gold();
  gold.mutable_reservation()->clear_users();
  gold.mutable_reservation()->set_bytes_per_s(50);
  const Status status = CheckPartIsSeen(gold, 1001, 50);
  EXPECT_EQ(status.code(), ErrorCode::kNotSupported);
  EXPECT_NE(status.message().find("nothing was changed"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("osdctl reserve gold"), std::string::npos) << status.message();
  EXPECT_FALSE(CheckPartIsSeen(Gold(), 1002, 50).ok());
  EXPECT_FALSE(CheckPartIsSeen(Gold(), 1001, 60).ok()) << "what it kept is not what was asked";
}

// Goal: `release C --user U` never takes the promise of the class.
TEST(UserPartTest, WhoHasNoPartCannotGiveOneBack) {
  EXPECT_TRUE(CheckHasPart(Gold(), 1001).ok());
  EXPECT_EQ(CheckHasPart(Gold(), 1002).code(), ErrorCode::kNotFound);
  EXPECT_EQ(CheckHasPart(wire::ClassInfo(), 1001).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::osdctl
