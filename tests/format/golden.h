// Golden: records as they were first shipped, in a text file beside the test: "name = hex", where
// xx*n stands for n times the byte xx. WEIR_WRITE_GOLDEN=1 writes the file from what is made now,
// for a new format only: a shipped file never changes.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#ifndef WEIR_GOLDEN_DIR  // of the build
#define WEIR_GOLDEN_DIR "tests/format"
#endif

namespace weir::testing {

inline std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (size_t i = 0; i < bytes.size();) {
    size_t run = 1;
    while (i + run < bytes.size() && bytes[i + run] == bytes[i]) ++run;
    char text[32];
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(bytes[i]));
    if (run < 8) {
      run = 1;
      std::snprintf(text, sizeof text, "%02x", byte);
    } else {
      std::snprintf(text, sizeof text, " %02x*%zu ", byte, run);
    }
    hex += text;
    i += run;
  }
  return hex;
}

inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  std::istringstream words{std::string(hex)};
  for (std::string word; words >> word;) {
    const size_t star = word.find('*');
    if (star != std::string::npos) {
      const auto byte = static_cast<char>(std::stoul(word.substr(0, star), nullptr, 16));
      bytes.append(std::stoul(word.substr(star + 1)), byte);
      continue;
    }
    for (size_t i = 0; i + 1 < word.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoul(word.substr(i, 2), nullptr, 16)));
    }
  }
  return bytes;
}

class Golden {
 public:
  explicit Golden(const std::string& file)
      : path_(std::string(WEIR_GOLDEN_DIR) + "/" + file),
        write_(std::getenv("WEIR_WRITE_GOLDEN") != nullptr) {
    if (write_) return;
    std::ifstream in(path_);
    EXPECT_TRUE(in.good()) << path_;
    for (std::string line; std::getline(in, line);) {
      const size_t equals = line.find(" = ");
      if (line.starts_with('#') || equals == std::string::npos) continue;
      hex_[line.substr(0, equals)] = line.substr(equals + 3);
    }
  }
  ~Golden() {
    if (!write_) return;
    std::ofstream out(path_);
    for (const std::string& name : order_) out << name << " = " << hex_[name] << "\n";
  }
  Golden(const Golden&) = delete;
  Golden& operator=(const Golden&) = delete;

  // What is made now has the bytes that were shipped. Returns those.
  std::string Expect(const std::string& name, std::string_view made) {
    if (write_) {
      order_.push_back(name);
      hex_[name] = ToHex(made);
    }
    EXPECT_EQ(ToHex(made), hex_[name]) << name << " moved: old disks are not read any more";
    return FromHex(hex_[name]);
  }
  // Shipped bytes that cannot be made again, only read; `make` for a new file.
  template <typename Make>
  std::string Shipped(const std::string& name, Make make) {
    if (write_) {
      order_.push_back(name);
      hex_[name] = ToHex(make());
    }
    EXPECT_TRUE(hex_.contains(name)) << name;
    return FromHex(hex_[name]);
  }

 private:
  const std::string path_;
  const bool write_;
  std::map<std::string, std::string> hex_;
  std::vector<std::string> order_;
};

}  // namespace weir::testing
