#include "common/qos/contract_placement.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "common/base/prng.h"
#include "common/testing/seed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

ServiceContract Wants(double iops, uint64_t bytes, uint32_t copies = 1) {
  ServiceContract contract;
  contract.iops = iops;
  contract.capacity_bytes = bytes;
  contract.copies = copies;
  return contract;
}

TEST(ContractPlacementTest, TakesTheServerThatIsLeastShortOfAnything) {
  const std::vector<ContractServer> servers{{100, 50, 1000, 100}, {100, 40, 1000, 400}};
  const auto places = PlaceContract(Wants(1, 1), servers);
  ASSERT_TRUE(places.has_value());
  EXPECT_THAT((*places)[0], ElementsAre(1));
}

TEST(ContractPlacementTest, PartsAndCopiesStandOnDistinctServers) {
  const std::vector<ContractServer> servers(4, {100, 0, 1000, 0});
  const auto places = PlaceContract(Wants(100, 1000, 2), servers, {.stripe = 2});
  ASSERT_TRUE(places.has_value());
  std::set<size_t> used;
  for (const auto& copy : *places) {
    EXPECT_EQ(copy.size(), 2u);
    used.insert(copy.begin(), copy.end());
  }
  EXPECT_EQ(used.size(), 4u);
  EXPECT_FALSE(PlaceContract(Wants(100, 1000, 3), servers, {.stripe = 2}).has_value());
}

TEST(ContractPlacementTest, LeewayMakesPartsLarger) {
  const std::vector<ContractServer> servers(2, {100, 30, 1000, 0});
  EXPECT_TRUE(PlaceContract(Wants(120, 10), servers, {.stripe = 2}).has_value());
  EXPECT_FALSE(PlaceContract(Wants(120, 10), servers, {.stripe = 2, .leeway = 1.5}).has_value());
}

// (10): 14 pending and 120 ms need 126.7 of 630 requests a second.
TEST(ContractPlacementTest, ABoundIsARate) {
  ServiceContract contract = Wants(10, 0);
  contract.max_pending = 14;
  contract.bound = 120ms;
  EXPECT_TRUE(PlaceContract(contract, {{630, 503, 1, 0}}).has_value());
  EXPECT_FALSE(PlaceContract(contract, {{630, 504, 1, 0}}).has_value());
  contract.bound = 1ms;  // shorter than one request
  EXPECT_FALSE(PlaceContract(contract, {{630, 0, 1, 0}}).has_value());
}

// Goal: nobody is ever promised more than there is, and the heuristic places at least as many of a
// random stream of contracts as taking the first server that fits.
TEST(ContractPlacementPropertyTest, NeverOverfillsAndPlacesMoreThanFirstFit) {
  Prng prng(weir::testing::TestSeed());
  int placed = 0, first_fit = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<ContractServer> ours(prng.Uniform(2, 8));
    for (ContractServer& server : ours) server = {50 + 100 * prng.Real(), 0, 1000, 0};
    std::vector<ContractServer> naive = ours;
    for (int n = 0; n < 60; ++n) {
      // Of one kind with many requests, one with many bytes.
      const bool busy = prng.Chance(.5);
      const ServiceContract contract =
          Wants(prng.Real() * (busy ? 25 : 3), prng.Uniform(0, busy ? 30 : 250));
      const auto fits = [&](const ContractServer& server) {
        return server.iops_promised + contract.iops <= server.iops_max &&
               server.promised_bytes + contract.capacity_bytes <= server.capacity_bytes;
      };
      const auto book = [&](ContractServer& server) {
        ASSERT_TRUE(fits(server));
        server.iops_promised += contract.iops;
        server.promised_bytes += contract.capacity_bytes;
      };
      if (const auto places = PlaceContract(contract, ours); places.has_value()) {
        book(ours[(*places)[0][0]]);
        ++placed;
      } else {
        ASSERT_TRUE(std::none_of(ours.begin(), ours.end(), fits));
      }
      const auto first = std::find_if(naive.begin(), naive.end(), fits);
      if (first == naive.end()) continue;
      book(*first);
      ++first_fit;
    }
  }
  EXPECT_GT(placed, 3000);
  EXPECT_GE(placed, first_fit * .98);
}

}  // namespace
}  // namespace weir
