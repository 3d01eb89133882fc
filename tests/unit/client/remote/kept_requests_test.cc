// Goal: what was answered early is kept by its place until it is durable, and leaves in order.
#include "client/remote/kept_requests.h"

#include <gtest/gtest.h>

namespace weir::client {
namespace {

class KeptRequestsTest : public ::testing::Test {
 protected:
  void Keep(uint64_t order, uint64_t id) {
    KeptRequests::Request request;
    request.id = id;
    request.channel = id % 2;
    kept_.Keep(order, request);
  }
  static std::vector<uint64_t> Ids(const std::vector<KeptRequests::Request>& requests) {
    std::vector<uint64_t> ids;
    for (const KeptRequests::Request& request : requests) {
      EXPECT_EQ(request.channel, request.id % 2);
      ids.push_back(request.id);
    }
    return ids;
  }
  using Numbers = std::vector<uint64_t>;
  KeptRequests kept_;
};

// Answers of several connections are not read in their order, and other mounts have orders, too.
TEST_F(KeptRequestsTest, LeaveByTheirPlaceWhateverTheirIds) {
  Keep(9, 1);
  Keep(2, 8);
  Keep(5, 3);
  EXPECT_EQ(Ids(kept_.TakeAll()), (Numbers{8, 3, 1}));
  EXPECT_TRUE(kept_.empty());
}

TEST_F(KeptRequestsTest, LeaveOnceWhenTheyAreDurable) {
  Keep(2, 20);
  Keep(4, 40);
  Keep(6, 60);
  EXPECT_TRUE(kept_.TakeDurable(0).empty());
  EXPECT_TRUE(kept_.TakeDurable(1).empty());
  EXPECT_EQ(Ids(kept_.TakeDurable(4)), (Numbers{20, 40}));
  EXPECT_TRUE(kept_.TakeDurable(5).empty());
  EXPECT_FALSE(kept_.empty());
  EXPECT_EQ(Ids(kept_.TakeDurable(6)), Numbers{60});
  EXPECT_TRUE(kept_.empty());
}

TEST_F(KeptRequestsTest, AreRepeatedButForWhatIsDurable) {
  Keep(1, 10);
  Keep(2, 20);
  Keep(3, 30);
  kept_.TakeDurable(1);
  EXPECT_EQ(Ids(kept_.TakeAll()), (Numbers{20, 30}));
  Keep(1, 20);  // another life counts anew
  EXPECT_EQ(Ids(kept_.TakeDurable(1)), Numbers{20});
}

TEST_F(KeptRequestsTest, APlaceIsOfOneRequest) {
  Keep(7, 70);
  Keep(7, 70);
  EXPECT_EQ(Ids(kept_.TakeAll()), Numbers{70});
}

}  // namespace
}  // namespace weir::client
