#include "tools/osdctl/version_document.h"

#include <fmt/format.h>

#include <set>

#include "tools/cli/table.h"

namespace weir::osdctl {
namespace {

std::string TextOf(const wire::Build& build) {
  return fmt::format("{} {} {} {}", build.version(), build.commit(), build.wire(),
                     build.disk_formats());
}

Json ToJson(const Built& one) {
  return {{"who", one.who},
          {"release", one.build.version()},
          {"commit", one.build.commit()},
          {"wire", one.build.wire()},
          {"disk_formats", one.build.disk_formats()}};
}

}  // namespace

bool AreAlike(const std::vector<Built>& all) {
  std::set<std::string> texts;
  for (const Built& one : all) texts.insert(TextOf(one.build));
  return texts.size() <= 1;
}

std::string VersionTable(const std::vector<Built>& all) {
  cli::Table table({"WHO", "VERSION", "COMMIT", ">WIRE", "DISK FORMATS"});
  for (const Built& one : all) {
    const wire::Build& build = one.build;
    if (build.wire() == 0) {
      table.AddRow({one.who, "older", "-", "-", "-"});
    } else {
      table.AddRow({one.who, build.version(), build.commit(), std::to_string(build.wire()),
                    build.disk_formats()});
    }
  }
  return table.Render();
}

Json VersionDocument(const std::vector<Built>& all) {
  Json rows = Json::array();
  for (const Built& one : all) rows.push_back(ToJson(one));
  return {{"programs", rows}, {"alike", AreAlike(all)}};
}

}  // namespace weir::osdctl
