// Figures as SVG files and as text for a terminal. Curves of the paper (or of theory) are dashed,
// in text drawn with dots.
#pragma once

#include <string>

#include "tools/sim/experiment.h"

namespace weir::sim {

std::string SvgOf(const Figure& figure);
// `columns` x `rows` characters for the plot itself, labels around it.
std::string TextOf(const Figure& figure, int columns = 72, int rows = 16);

}  // namespace weir::sim
