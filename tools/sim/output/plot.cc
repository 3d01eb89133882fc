#include "tools/sim/output/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::sim {
namespace {

struct Range {
  double low = kUnbounded;
  double high = -kUnbounded;

  void Add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Where the value lies between low and high, 0..1.
  [[nodiscard]] double Part(double value) const { return (value - low) / (high - low); }
};

// The step of 1, 2 or 5 times a power of ten that cuts the range into about `count` pieces.
double StepOf(const Range& range, int count) {
  const double rough = (range.high - range.low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

// Wide enough for all points, from 0 where that is near, with ends on whole steps.
Range RangeOf(const Figure& figure, std::vector<double> Curve::*axis) {
  Range range;
  for (const Curve& curve : figure.curves) {
    for (double value : curve.*axis) range.Add(value);
  }
  if (range.low > range.high) range = {0, 1};
  if (range.low > 0 && range.low < range.high * 0.7) range.low = 0;
  if (range.high <= range.low) range.high = range.low + 1;
  const double step = StepOf(range, 5);
  range.low = std::floor(range.low / step) * step;
  range.high = std::ceil(range.high / step) * step;
  return range;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// The plotting area of an SVG, in pixels.
struct Area {
  double left = 70, top = 40, width = 520, height = 300;
  Range x, y;

  [[nodiscard]] double X(double value) const { return left + x.Part(value) * width; }
  [[nodiscard]] double Y(double value) const { return top + (1 - y.Part(value)) * height; }
};

std::string SvgAxes(const Figure& figure, const Area& area) {
  std::string svg;
  for (double v = area.x.low, s = StepOf(area.x, 5); v <= area.x.high + s / 2; v += s) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" class=\"g\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:.4g}</text>\n",
        area.X(v), area.top, area.top + area.height, area.top + area.height + 16, v);
  }
  for (double v = area.y.low, s = StepOf(area.y, 5); v <= area.y.high + s / 2; v += s) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"g\"/>"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        area.left, area.left + area.width, area.Y(v), area.left - 6, area.Y(v) + 4, v);
  }
  svg += fmt::format("<text x=\"{:.1f}\" y=\"22\" text-anchor=\"middle\" class=\"t\">{}</text>\n",
                     area.left + area.width / 2, Escaped(figure.title));
  svg +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                  area.left + area.width / 2, area.top + area.height + 36, Escaped(figure.x_label));
  svg += fmt::format(
      "<text transform=\"translate(16 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      area.top + area.height / 2, Escaped(figure.y_label));
  return svg;
}

std::string SvgCurve(const Curve& curve, size_t index, const Area& area) {
  static constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                             "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};
  const char* colour = kColours[index % std::size(kColours)];
  const char* dash = curve.paper ? " stroke-dasharray=\"6 4\"" : "";
  std::string points;
  std::string marks;
  const bool few = curve.x.size() <= 40;
  for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    points += fmt::format("{:.1f},{:.1f} ", area.X(curve.x[i]), area.Y(curve.y[i]));
    if (!few) continue;
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>",
                         area.X(curve.x[i]), area.Y(curve.y[i]), colour);
  }
  const double y = area.top + 8 + 18 * static_cast<double>(index);
  const double x = area.left + area.width + 12;
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>{}\n"
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"2\"{}/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
      points, colour, dash, marks, x, y, x + 24, y, colour, dash, x + 30, y + 4,
      Escaped(curve.name));
}

// A grid of characters, row 0 on top.
class Canvas {
 public:
  Canvas(int columns, int rows, Range x, Range y)
      : columns_(columns),
        x_(x),
        y_(y),
        lines_(static_cast<size_t>(rows), std::string(columns, ' ')) {}

  void Mark(double x, double y, char sign) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const auto rows = static_cast<double>(lines_.size() - 1);
    const auto column = static_cast<size_t>(std::lround(x_.Part(x) * (columns_ - 1)));
    const auto row = static_cast<size_t>(std::lround((1 - y_.Part(y)) * rows));
    if (row < lines_.size() && column < lines_[row].size()) lines_[row][column] = sign;
  }
  // Points between two neighbours, so that a curve of few points is still a line.
  void Line(double x1, double y1, double x2, double y2, char sign) {
    const int steps = std::max(1, static_cast<int>(std::abs(x_.Part(x2) - x_.Part(x1)) * columns_));
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      Mark(x1 + (x2 - x1) * part, y1 + (y2 - y1) * part, sign);
    }
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  int columns_;
  Range x_, y_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string SvgOf(const Figure& figure) {
  Area area;
  area.x = RangeOf(figure, &Curve::x);
  area.y = RangeOf(figure, &Curve::y);
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"400\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>.g{stroke:#ddd}.t{font-size:14px;font-weight:bold}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += SvgAxes(figure, area);
  for (size_t i = 0; i < figure.curves.size(); ++i) svg += SvgCurve(figure.curves[i], i, area);
  return svg + "</svg>\n";
}

std::string TextOf(const Figure& figure, int columns, int rows) {
  static constexpr char kSigns[] = "*o+x#@%&";
  const Range x = RangeOf(figure, &Curve::x);
  const Range y = RangeOf(figure, &Curve::y);
  Canvas canvas(columns, rows, x, y);
  std::string legend;
  for (size_t i = 0; i < figure.curves.size(); ++i) {
    const Curve& curve = figure.curves[i];
    const char sign = curve.paper ? '.' : kSigns[i % (std::size(kSigns) - 1)];
    const size_t points = std::min(curve.x.size(), curve.y.size());
    for (size_t k = 0; k < points; ++k) {
      const size_t before = k == 0 ? 0 : k - 1;
      canvas.Line(curve.x[before], curve.y[before], curve.x[k], curve.y[k], sign);
    }
    legend += fmt::format("  {} {}", sign, curve.name);
  }
  std::string text = fmt::format("{} ({} over {})\n", figure.title, figure.y_label, figure.x_label);
  for (size_t row = 0; row < canvas.lines().size(); ++row) {
    const bool first = row == 0;
    const bool last = row + 1 == canvas.lines().size();
    const std::string label =
        first ? fmt::format("{:.4g}", y.high) : (last ? fmt::format("{:.4g}", y.low) : "");
    text += fmt::format("{:>8} |{}\n", label, canvas.lines()[row]);
  }
  text += fmt::format("{:>8} +{}\n", "", std::string(static_cast<size_t>(columns), '-'));
  const std::string right = fmt::format("{:.4g}", x.high);
  text += fmt::format("{:>8}  {:<{}}{}\n", "", fmt::format("{:.4g}", x.low),
                      columns - static_cast<int>(right.size()), right);
  return text + "         " + legend + "\n";
}

}  // namespace weir::sim
