#include "draws/point_list.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace berthline {

PointList::PointList(std::vector<double> points, std::vector<double> heights)
    : points_(std::move(points)) {
  const size_t count = points_.size();
  const size_t cells = std::bit_ceil(4 * count + 1);
  last_cell_ = static_cast<double>(cells - 1);
  if (count > 0) {
    low_ = points_.front();
    const double scale = static_cast<double>(cells) / (points_.back() - low_);
    if (std::isfinite(scale)) scale_ = scale;
  }
  first_.reserve(cells + 1);
  size_t number = 0;
  for (size_t cell = 0; cell < cells; ++cell) {
    first_.push_back(static_cast<uint32_t>(number));
    while (number < count && cell_of(points_[number]) == cell) ++number;
  }
  first_.push_back(static_cast<uint32_t>(count));
  points_.push_back(std::numeric_limits<double>::quiet_NaN());  // no value reaches it
  if (heights.empty()) return;
  // The slope is 0 before the first point and after the last.
  lines_.push_back({low_, heights.front(), 0.0});
  for (size_t i = 0; i + 1 < count; ++i) {
    const double slope = (heights[i + 1] - heights[i]) / (points_[i + 1] - points_[i]);
    lines_.push_back({points_[i], heights[i], slope});
  }
  lines_.push_back({points_[count - 1], heights[count - 1], 0.0});
}

}  // namespace berthline
