#include "quotients.h"

#include <cstring>

#include "clones.h"
#include "cut.h"

namespace berthline {
namespace {

#if defined(__GNUC__)
constexpr size_t kLanes = Quotients::kLanes;
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using FloatLanes = float __attribute__((vector_size(kLanes * sizeof(float))));
// Some that lie anywhere in memory.
using LanesInMemory =
    double __attribute__((vector_size(kLanes * sizeof(double)), aligned(alignof(double))));
using UsualRow = float
    __attribute__((vector_size(Quotients::kUsualWidth * sizeof(float)), aligned(alignof(float))));

BERTHLINE_INLINE const LanesInMemory& lanes(const double* from) {
  return *reinterpret_cast<const LanesInMemory*>(from);
}
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
  const double* const operands = records.values + fixed + group.first;
  float* out = rows.out;
#if defined(__GNUC__)
  const Lanes step_a = lanes(step), step_b = lanes(step + kLanes);
  const auto is_share = lanes(group.is_share) != 0.0;
  const Lanes limit = Lanes{} + kObservationLimit;
#endif
  for (size_t row = 0; row < rows.count; ++row, out += width) {
    const double* const operand = operands + static_cast<size_t>(rows.ids[row]) * records.stride;
    if constexpr (kIsUsual) {
      copy_usual(operand - fixed, out);
      out[rows.flag_position] = rows.flags[row];
    }
#if defined(__GNUC__)
    const Lanes a = step_a - lanes(operand), b = step_b - lanes(operand + kLanes);
    const Lanes value = a / (is_share ? a + b : b);
    Lanes within = value < limit ? value : limit;  // as `cut` does it
    within = within > -limit ? within : -limit;
    const FloatLanes result =
        __builtin_convertvector(value == value ? within : Lanes{}, FloatLanes);
#else
    float result[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double a = step[lane] - operand[lane];
      const double b = step[kLanes + lane] - operand[kLanes + lane];
      result[lane] = cut(a / (group.is_share[lane] != 0 ? a + b : b));
    }
#endif
    // Lanes that nobody uses write where the first does, before it.
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
  for (const Group& group : groups_) write_group(group, &steps_[group.first], rows);
}

void TableRows::copy_fixed() const {
  float* to = out;
  for (size_t row = 0; row < count; ++row, to += width) {
    std::memcpy(to, records->of(ids[row]), records->fixed_width * sizeof(float));
  }
}

void TableRows::write_flags() const {
  float* to = out + flag_position;
  for (size_t row = 0; row < count; ++row, to += width) *to = flags[row];
}

size_t Quotients::add(bool is_share, size_t position) {
  const size_t lane = count_++ % kLanes;
  if (lane == 0) {
    Group group{{}, {}, num_operands()};
    for (size_t& each : group.position) each = position;
    groups_.push_back(group);
    steps_.resize(steps_.size() + 2 * kLanes, 1.0);
  }
  groups_.back().is_share[lane] = is_share ? 1.0 : 0.0;
  groups_.back().position[lane] = position;
  return groups_.back().first + lane;
}

}  // namespace berthline
