#include "common/qos/service_contract.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

using ::testing::HasSubstr;

ServiceContract Contract() {
  ServiceContract contract;
  contract.iops = 675;
  contract.capacity_bytes = 96'000;
  contract.bound = std::chrono::milliseconds(120);
  return contract;
}

TEST(ServiceContractTest, APartHasItsShareWithLeeway) {
  const ServiceContract part = PartOf(Contract(), 3, 1.5);
  EXPECT_DOUBLE_EQ(part.iops, 337.5);
  EXPECT_EQ(part.capacity_bytes, 32'000u);
  EXPECT_EQ(part.bound, Contract().bound);
  EXPECT_EQ(part.max_pending, 8u);                       // 1.5 * 17 / 3 = 8.5 requests
  EXPECT_DOUBLE_EQ(PartOf(Contract(), 1, 2).iops, 675);  // never more than the whole
}

TEST(ServiceContractTest, ChecksSayWhatIsOutOfRange) {
  EXPECT_TRUE(CheckContract(Contract()).ok());
  ServiceContract sure = Contract();
  sure.probability = 1;
  EXPECT_THAT(CheckContract(sure).message(), HasSubstr("less than 100 %"));
  ServiceContract backwards = Contract();
  backwards.bound = Duration(-1);
  EXPECT_THAT(CheckContract(backwards).message(), HasSubstr("negative"));
}

TEST(ServiceContractTest, LeewayIsTheSmallestThatFitsTheSkew) {
  ServiceContract contract = Contract();
  contract.iops = 300;  // 100 per server
  const std::vector<double> rates = {90,  100, 105, 110, 120, 125, 130, 140, 145, 148,
                                     100, 100, 100, 100, 100, 100, 100, 100, 100, 190};
  EXPECT_DOUBLE_EQ(ChooseLeeway(contract, 3, rates, {1, 1.25, 1.5, 2}), 1.5);  // 1 of 20 above
  contract.probability = 0.5;
  EXPECT_DOUBLE_EQ(ChooseLeeway(contract, 3, rates, {1, 1.25, 1.5, 2}), 1);
  contract.probability = 0.99;
  EXPECT_DOUBLE_EQ(ChooseLeeway(contract, 3, rates, {1, 1.25, 1.5}), 1.5);
}

}  // namespace
}  // namespace weir
