// The page that lays the papers beside the simulator and, when there are results, live daemons. A
// Python program draws it (tools/lib/report): from the document of `weir-sim run -o json`.
#pragma once

#include <string>

#include "common/base/result.h"

namespace weir::sim {

struct ReportOptions {
  std::string output;  // the HTML file
  std::string from;    // a file with the document; empty: it is given
  std::string live;    // what acceptance programs wrote to WEIR_RESULTS; may be empty
  std::string plots;   // a directory for the plots as files; may be empty
  std::string format = "pdf";
};

// Where the Python program is: of an installed weir-sim in ../share/weirfs, of one that was built
// in the sources. kNotFound says where it was looked for.
Result<std::string> FindReportProgram();
// Runs it; what it says goes to our own stderr.
Status WriteReport(const ReportOptions& options, const std::string& document);

}  // namespace weir::sim
