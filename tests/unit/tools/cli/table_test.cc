#include "tools/cli/table.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(TableTest, AlignsColumnsAndLeavesNoBlanksAtTheEnds) {
  Table table({"CLASS", ">RATE", "UNTIL"});
  table.AddRow({"gold", "200MiB/s", "-"});
  table.AddRow({"\xc3\xa4\xc3\xb6", "-", ""});
  EXPECT_EQ(table.Render(),
            "CLASS      RATE  UNTIL\n"
            "gold   200MiB/s  -\n"
            "\xc3\xa4\xc3\xb6            -\n");
}

}  // namespace
}  // namespace weir::cli
