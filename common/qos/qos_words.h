// The words that operators choose profiles and boxes by: those of the tables that the parsers of
// qos_config.h read, in their order, for help texts.
#pragma once

#include <string_view>
#include <vector>

namespace weir {

std::vector<std::string_view> ProfileWords();
std::vector<std::string_view> SurplusWords();
std::vector<std::string_view> SharingWords();
std::vector<std::string_view> GateWords();
std::vector<std::string_view> DispatchWords();
std::vector<std::string_view> CostWords();
std::vector<std::string_view> AllocationWords();

}  // namespace weir
