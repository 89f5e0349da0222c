#include "columns/quotients.h"

#include <cstring>
#include <type_traits>

#include "columns/observation_limit.h"
#include "core/vector_clones.h"

namespace berthline {
namespace {

#if defined(__GNUC__)
using UsualRow = float
    __attribute__((vector_size(Quotients::kUsualWidth * sizeof(float)), aligned(alignof(float))));
using Halves = int32_t __attribute__((vector_size(kLanes * sizeof(double))));
using LaneBits = uint64_t __attribute__((vector_size(kLanes * sizeof(uint64_t))));
#endif

BERTHLINE_INLINE void copy_usual(const double* from, float* to) {
#if defined(__GNUC__)
  *reinterpret_cast<UsualRow*>(to) = *reinterpret_cast<const UsualRow*>(from);
#else
  std::memcpy(to, from, Quotients::kUsualWidth * sizeof(float));
#endif
}

}  // namespace

template <bool kIsUsual>
BERTHLINE_INLINE void Quotients::write_rows(const Group& group, const double* step,
                                            const TableRows& rows) {
  const RowRecords& records = *rows.records;
  const size_t width = kIsUsual ? kUsualWidth : rows.width;
  const size_t fixed = RowRecords::doubles_of(kIsUsual ? kUsualWidth : records.fixed_width);
  const double* const kept_numbers = records.values + fixed;
  float* out = rows.out;
#if defined(__GNUC__)
  const Lanes step_a = lanes(step), step_b = lanes(step + kLanes);
  const auto is_share = lanes(group.is_share) != 0.0;
  Halves kept_a, kept_b;
  std::memcpy(&kept_a, group.kept[0], sizeof kept_a);
  std::memcpy(&kept_b, group.kept[1], sizeof kept_b);
  LaneBits has_a, has_b;
  std::memcpy(&has_a, group.has_kept[0], sizeof has_a);
  std::memcpy(&has_b, group.has_kept[1], sizeof has_b);
#endif
  for (size_t row = 0; row < rows.count; ++row, out += width) {
    const double* const kept = kept_numbers + static_cast<size_t>(rows.ids[row]) * records.stride;
    if constexpr (kIsUsual) {
      copy_usual(kept - fixed, out);
      out[rows.flag_position] = rows.flags[row];
    }
#if defined(__GNUC__)
    Lanes less_a, less_b;
    if constexpr (kIsUsual) {
      const Lanes all = lanes(kept);
      less_a = (Lanes)__builtin_shuffle((Halves)all, kept_a);
      less_b = (Lanes)__builtin_shuffle((Halves)all, kept_b);
    } else {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        less_a[lane] = kept[group.kept[0][2 * lane] / 2];
        less_b[lane] = kept[group.kept[1][2 * lane] / 2];
      }
    }
    const Lanes a = step_a - (Lanes)((LaneBits)less_a & has_a);
    const Lanes b = step_b - (Lanes)((LaneBits)less_b & has_b);
    const Lanes value = a / (is_share ? a + b : b);
    FloatLanes result;
    cut(value, result);
#else
    float result[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto less = [&](size_t operand) {
        return group.has_kept[operand][lane] ? kept[group.kept[operand][2 * lane] / 2] : 0.0;
      };
      const double a = step[lane] - less(0), b = step[kLanes + lane] - less(1);
      result[lane] = cut(a / (group.is_share[lane] != 0 ? a + b : b));
    }
#endif
    // Unused lanes write to the first lane's position; the first lane is written last.
    for (size_t lane = kLanes; lane-- > 0;) out[group.position[lane]] = result[lane];
  }
}

BERTHLINE_CLONES
void Quotients::write_group(const Group& group, const double* step, const TableRows& rows) {
  write_rows<false>(group, step, rows);
}

BERTHLINE_CLONES
void Quotients::write_usual(const Group& group, const double* step, const TableRows& rows) {
  write_rows<true>(group, step, rows);
}

void Quotients::write_all(const TableRows& rows) const {
  if (rows.records->fixed_width > 0) rows.copy_fixed();
  if (rows.flags != nullptr) rows.write_flags();
  for (size_t g = 0; g < groups_.size(); ++g) {
    write_group(groups_[g], &steps_[g * 2 * kLanes], rows);
  }
}

void TableRows::copy_fixed() const {
  const auto copy_each = [this](auto size) {
    float* to = out;
    for (size_t row = 0; row < count; ++row, to += width) {
      std::memcpy(to, records->of(ids[row]), size * sizeof(float));
    }
  };
  // Copies of a known size need no call.
  switch (records->fixed_width) {
    case 1:
      return copy_each(std::integral_constant<size_t, 1>());
    case 4:
      return copy_each(std::integral_constant<size_t, 4>());
    case 8:
      return copy_each(std::integral_constant<size_t, 8>());
    default:
      return copy_each(records->fixed_width);
  }
}

void TableRows::write_flags() const {
  float* to = out + flag_position;
  for (size_t row = 0; row < count; ++row, to += width) *to = flags[row];
}

size_t Quotients::add(bool is_share, size_t position) {
  const size_t lane = count_++ % kLanes;
  if (lane == 0) {
    groups_.push_back({});
    std::fill_n(groups_.back().position, kLanes, position);
    steps_.resize(steps_.size() + 2 * kLanes, 1.0);
  }
  groups_.back().is_share[lane] = is_share ? 1.0 : 0.0;
  groups_.back().position[lane] = position;
  return (groups_.size() - 1) * 2 * kLanes + lane;
}

void Quotients::set_kept(size_t operand, size_t kept) {
  Group& group = groups_[operand / (2 * kLanes)];
  int32_t* const halves = &group.kept[operand / kLanes % 2][0];
  group.has_kept[operand / kLanes % 2][operand % kLanes] = ~uint64_t{0};
  for (size_t half = 0; half < 2; ++half) {
    halves[2 * (operand % kLanes) + half] = static_cast<int32_t>(2 * kept + half);
  }
}

}  // namespace berthline
