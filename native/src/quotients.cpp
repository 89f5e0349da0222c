#include "quotients.h"

#include <cstring>

#include "clones.h"
#include "cut.h"

namespace berthline {
namespace {

constexpr size_t kUsualWidth = 8;  // a copy of known length needs no call

#if defined(__GNUC__)
constexpr size_t kLanes = Quotients::kLanes;
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using FloatLanes = float __attribute__((vector_size(kLanes * sizeof(float))));
// Some that lie anywhere in memory.
using LanesInMemory =
    double __attribute__((vector_size(kLanes * sizeof(double)), aligned(alignof(double))));
using RowInMemory =
    float __attribute__((vector_size(kUsualWidth * sizeof(float)), aligned(alignof(float))));

inline const LanesInMemory& lanes(const double* from) {
  return *reinterpret_cast<const LanesInMemory*>(from);
}
#endif

// Copies the columns that stay the same, however many they are.
void copy_fixed(const TableRows& rows) {
  float* out = rows.out;
  for (size_t row = 0; row < rows.count; ++row, out += rows.width) {
    std::memcpy(out, rows.records.of(rows.ids[row]), rows.records.fixed_width * sizeof(float));
  }
}

void write_flags(const TableRows& rows) {
  float* out = rows.out + rows.flag_position;
  for (size_t row = 0; row < rows.count; ++row, out += rows.width) *out = rows.flags[row];
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
  return steps_.size() - 2 * kLanes + lane;
}

BERTHLINE_CLONES
void Quotients::write(const TableRows& rows) const {
  const auto [ids, count, begin, width, records, known_flags, flag_position] = rows;
  const uint8_t* flags = known_flags;
  bool copies = records.fixed_width == kUsualWidth;
  if (records.fixed_width > 0 && (!copies || groups_.empty())) copy_fixed(rows);
  if (flags != nullptr && groups_.empty()) write_flags(rows);
  const double* step = steps_.data();
  size_t first = RowRecords::doubles_of(records.fixed_width);  // operand, in a record
  for (const Group& group : groups_) {
    float* out = begin;
#if defined(__GNUC__)
    const Lanes step_a = lanes(step), step_b = lanes(step + kLanes);
    const auto is_share = lanes(group.is_share) != 0.0;
    const Lanes limit = Lanes{} + kObservationLimit;
    for (size_t row = 0; row < count; ++row, out += width) {
      const double* const record = records.of(ids[row]);
      if (copies) {
        *reinterpret_cast<RowInMemory*>(out) = *reinterpret_cast<const RowInMemory*>(record);
      }
      if (flags != nullptr) out[flag_position] = flags[row];
      const Lanes a = step_a - lanes(record + first), b = step_b - lanes(record + first + kLanes);
      const Lanes value = a / (is_share ? a + b : b);
      Lanes within = value < limit ? value : limit;  // as `cut` does it
      within = within > -limit ? within : -limit;
      const FloatLanes result =
          __builtin_convertvector(value == value ? within : Lanes{}, FloatLanes);
      // Lanes that nobody uses write where the first does, before it.
      for (size_t lane = kLanes; lane-- > 0;) out[group.position[lane]] = result[lane];
    }
#else
    for (size_t row = 0; row < count; ++row, out += width) {
      const double* const record = records.of(ids[row]);
      if (copies) std::memcpy(out, record, kUsualWidth * sizeof(float));
      if (flags != nullptr) out[flag_position] = flags[row];
      for (size_t lane = kLanes; lane-- > 0;) {
        const double a = step[lane] - record[first + lane];
        const double b = step[kLanes + lane] - record[first + kLanes + lane];
        out[group.position[lane]] = cut(a / (group.is_share[lane] != 0 ? a + b : b));
      }
    }
#endif
    step += 2 * kLanes;
    first += 2 * kLanes;
    copies = false;
    flags = nullptr;
  }
}

}  // namespace berthline
