#include "osd/qos/dispatch/cscan.h"

#include <gmock/gmock.h>

#include <deque>
#include <vector>

#include "osd/qos/dispatch/fifo.h"

namespace weir::osd::qos {
namespace {

using ::testing::ElementsAre;

class DispatchTest : public ::testing::Test {
 protected:
  Request* At(uint64_t lba) {
    requests_.emplace_back();
    requests_.back().lba = lba;
    requests_.back().sequence = ++sequence_;
    return &requests_.back();
  }
  static std::vector<uint64_t> Drain(Dispatch* dispatch) {
    std::vector<uint64_t> order;
    while (dispatch->size() > 0) order.push_back(dispatch->Next()->lba);
    return order;
  }
  std::deque<Request> requests_;
  uint64_t sequence_ = 0;
};

TEST_F(DispatchTest, FifoKeepsTheOrderOfRelease) {
  Fifo fifo;
  for (uint64_t lba : {50, 10, 90}) fifo.Add(At(lba));
  EXPECT_THAT(Drain(&fifo), ElementsAre(50, 10, 90));
}

TEST_F(DispatchTest, CscanSweepsUpwardsFromTheHeadAndWraps) {
  Cscan cscan;
  for (uint64_t lba : {50, 10, 90, 60}) cscan.Add(At(lba));
  EXPECT_EQ(cscan.Next()->lba, 10u);
  EXPECT_EQ(cscan.Next()->lba, 50u);
  cscan.Add(At(20));
  cscan.Add(At(55));
  EXPECT_THAT(Drain(&cscan), ElementsAre(55, 60, 90, 20));
}

TEST_F(DispatchTest, EqualAddressesGoInOrderOfRelease) {
  Cscan cscan;
  Request* first = At(7);
  Request* second = At(7);
  cscan.Add(first);
  cscan.Add(second);
  EXPECT_EQ(cscan.Next(), first);
  EXPECT_EQ(cscan.Next(), second);
}

TEST_F(DispatchTest, ALowAddressIsNotHeldBackByAnEndlessUpwardStream) {
  Cscan cscan;
  cscan.Add(At(1000));
  cscan.Next();
  uint64_t next = 2000;
  for (int i = 0; i < 4; ++i) cscan.Add(At(next++));
  cscan.Add(At(1));
  int passed = 0;
  while (cscan.Next()->lba != 1) {
    cscan.Add(At(next++));
    ASSERT_LE(++passed, 10);
  }
  EXPECT_EQ(passed, 10);  // twice the window it met, itself included
}

TEST_F(DispatchTest, ARemovedRequestDoesNotComeOut) {
  Cscan cscan;
  Request* gone = At(5);
  gone->bytes = 100;
  cscan.Add(At(1));
  cscan.Add(gone);
  EXPECT_EQ(cscan.bytes(), 100u);
  cscan.Remove(gone);
  EXPECT_EQ(cscan.bytes(), 0u);
  EXPECT_THAT(Drain(&cscan), ElementsAre(1));
}

}  // namespace
}  // namespace weir::osd::qos
