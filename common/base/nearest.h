// The word that somebody probably meant who typed another.
#pragma once

#include <string>
#include <vector>

namespace weir {

// What `word` was probably to be; empty: nothing is near.
std::string NearestOf(const std::string& word, const std::vector<std::string>& names);

}  // namespace weir
