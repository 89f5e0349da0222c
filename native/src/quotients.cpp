#include "quotients.h"

#include <cstring>

#include "clones.h"
#include "cut.h"

namespace berthline {
namespace {

constexpr size_t kLanes = Quotients::kLanes;

#if defined(__GNUC__)
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using FloatLanes = float __attribute__((vector_size(kLanes * sizeof(float))));
// Some that lie anywhere among doubles.
using LanesInMemory =
    double __attribute__((vector_size(kLanes * sizeof(double)), aligned(alignof(double))));
#endif

// Copies the columns that stay the same; a copy of known length needs no call.
inline void copy_fixed(const double* record, size_t width, float* out) {
  constexpr size_t kUsual = 8;
  if (width == kUsual) {
    std::memcpy(out, record, kUsual * sizeof(float));
  } else {
    std::memcpy(out, record, width * sizeof(float));
  }
}

// Writes the quotients of one group, whose operands are at `offset` in records.
BERTHLINE_CLONES
void write_group(const Quotients::Group& group, const double* step, const RowRecords& records,
                 size_t offset, bool copies, const int32_t* ids, int count, float* out,
                 size_t width) {
  const double* const values = records.values;
  const size_t stride = records.stride;
#if defined(__GNUC__)
  const auto lanes = [](const double* from) -> const LanesInMemory& {
    return *reinterpret_cast<const LanesInMemory*>(from);
  };
  const Lanes step_a = lanes(step), step_b = lanes(step + kLanes);
  const auto is_share = lanes(group.is_share) != 0.0;
  const Lanes limit = Lanes{} + kObservationLimit;
#endif
  for (int row = 0; row < count; ++row, out += width) {
    const double* const record = values + static_cast<size_t>(ids[row]) * stride;
    if (copies) copy_fixed(record, width, out);
    const double* const operand = record + offset;
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

}  // namespace

size_t Quotients::add(bool is_share, size_t position) {
  const size_t lane = count_++ % kLanes;
  if (lane == 0) {
    groups_.emplace_back();
    for (size_t& each : groups_.back().position) each = position;
    steps_.resize(steps_.size() + 2 * kLanes, 1.0);
  }
  groups_.back().is_share[lane] = is_share ? 1.0 : 0.0;
  groups_.back().position[lane] = position;
  return (groups_.size() - 1) * 2 * kLanes + lane;
}

void Quotients::write(const RowRecords& records, const int32_t* ids, int count, float* out,
                      size_t width) const {
  const bool copies = records.fixed_width > 0;
  if (groups_.empty() && copies) {
    for (int row = 0; row < count; ++row, out += width) {
      copy_fixed(records.of(ids[row]), width, out);
    }
  }
  const size_t begin = RowRecords::doubles_of(records.fixed_width);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const size_t first = 2 * kLanes * g;
    write_group(groups_[g], &steps_[first], records, begin + first, copies && g == 0, ids, count,
                out, width);
  }
}

}  // namespace berthline
