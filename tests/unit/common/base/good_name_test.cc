#include "common/base/good_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir {
namespace {

TEST(GoodNameTest, IsNeitherAnOptionNorAStepUp) {
  const std::vector<std::string> good = {"gold", "0", "_x", "a.b-c_D", std::string(64, 'x')};
  for (const std::string& name : good) {
    EXPECT_TRUE(IsGoodName(name)) << name;
  }
  for (const std::string name : {"-x", "--", "-", ".", "..", ".x"}) {
    EXPECT_FALSE(IsGoodName(name)) << name;
    EXPECT_TRUE(MayBeName(name)) << "older versions took it: " << name;
  }
  const std::vector<std::string> bad = {"", "a b", "a/b", "a,b", "\xc3\xa4", std::string(65, 'x')};
  for (const std::string& name : bad) {
    EXPECT_FALSE(IsGoodName(name)) << name;
    EXPECT_FALSE(MayBeName(name)) << name;
  }
}

}  // namespace
}  // namespace weir
