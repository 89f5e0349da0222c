// PointList: an ascending list of points, with lookup without a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berthline {

// The range of the points is divided into cells of equal width, so that a value is compared with
// the few points of its cell. With heights, the list also defines the lines between (point,
// height).
class PointList {
 public:
  explicit PointList(std::vector<double> points, std::vector<double> heights = {});

  // The number of points that are not larger than the value.
  size_t reached(double value) const {
    const size_t cell = cell_of(value);
    size_t number = first_[cell];
    const size_t end = first_[cell + 1];
    number += value >= points_[number] ? 1 : 0;  // most cells have at most one point: no branch
    while (number < end && value >= points_[number]) ++number;
    return number;
  }

  // The height on the lines; beyond the ends, the height of the end.
  double at(double x) const {
    const Line& line = lines_[reached(x)];
    return line.slope * (x - line.left) + line.height;
  }

 private:
  struct Line {
    double left, height, slope;
  };

  size_t cell_of(double value) const {
    const double place = (value - low_) * scale_;
    if (!(place > 0)) return 0;
    return place < last_cell_ ? static_cast<size_t>(place) : static_cast<size_t>(last_cell_);
  }

  std::vector<double> points_;  // and one more that no value reaches
  std::vector<Line> lines_;     // by the number of points reached
  std::vector<uint32_t> first_;
  double low_ = 0.0, scale_ = 0.0, last_cell_ = 0.0;
};

}  // namespace berthline
