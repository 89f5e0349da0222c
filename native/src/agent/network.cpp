#include "agent/network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/vector_clones.h"

namespace berthline {
namespace {

constexpr size_t kVector = 8;

#if defined(__GNUC__)
#define BERTHLINE_UNROLL _Pragma("GCC unroll 8")  // otherwise sums are kept in memory
using Vector = float __attribute__((vector_size(kVector * sizeof(float))));
// A vector at any float's address.
using InMemory =
    float __attribute__((vector_size(kVector * sizeof(float)), aligned(alignof(float)), may_alias));

BERTHLINE_INLINE void cut_off(Vector& sum) { sum = sum < 0.0f ? Vector{} : sum; }
#else
#define BERTHLINE_UNROLL
struct Vector {
  float value[kVector];

  Vector& operator+=(const Vector& other) {
    for (size_t i = 0; i < kVector; ++i) value[i] += other.value[i];
    return *this;
  }
  friend Vector operator*(float factor, Vector vector) {
    for (float& value : vector.value) value *= factor;
    return vector;
  }
};
using InMemory = Vector;

BERTHLINE_INLINE void cut_off(Vector& sum) {
  for (float& value : sum.value) value = value < 0.0f ? 0.0f : value;
}
#endif

BERTHLINE_INLINE const InMemory& at(const float* from) {
  return *reinterpret_cast<const InMemory*>(from);
}
BERTHLINE_INLINE InMemory& at(float* from) { return *reinterpret_cast<InMemory*>(from); }

// R rows and V vectors of outputs, whose sums stay in registers: several, because each addition
// waits for the previous one. Every output is summed in the order of its inputs, so that all
// machines give the same bits.
template <size_t R, size_t V>
BERTHLINE_INLINE void block(const Linear& layer, const float* bias, const float* input,
                            size_t stride, size_t column, bool hides, float* output) {
  Vector sums[R][V];
  BERTHLINE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    BERTHLINE_UNROLL
    for (size_t v = 0; v < V; ++v) sums[r][v] = at(bias + column + v * kVector);
  }
  const float* weights = layer.weight.data() + column;
  const size_t inputs = layer.inputs, width = layer.width;
  for (size_t i = 0; i < inputs; ++i, weights += width) {
    BERTHLINE_UNROLL
    for (size_t v = 0; v < V; ++v) {
      const Vector weight = at(weights + v * kVector);
      BERTHLINE_UNROLL
      for (size_t r = 0; r < R; ++r) sums[r][v] += input[r * stride + i] * weight;
    }
  }
  BERTHLINE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    BERTHLINE_UNROLL
    for (size_t v = 0; v < V; ++v) {
      if (hides) cut_off(sums[r][v]);
      at(output + r * width + column + v * kVector) = sums[r][v];
    }
  }
}

// All rows of V vectors of outputs.
template <size_t V>
BERTHLINE_INLINE void strip(const Linear& layer, const float* bias, const float* input,
                            size_t stride, size_t rows, size_t column, bool hides, float* output) {
  constexpr size_t kRows = 8 / V;
  size_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    block<kRows, V>(layer, bias, input + row * stride, stride, column, hides,
                    output + row * layer.width);
  }
  for (; row < rows; ++row) {
    block<1, V>(layer, bias, input + row * stride, stride, column, hides,
                output + row * layer.width);
  }
}

BERTHLINE_CLONES
void apply(const Linear& layer, const float* bias, const float* input, size_t stride, size_t rows,
           bool hides, float* output) {
  const size_t width = layer.width;
  size_t column = 0;
  for (; column + 4 * kVector <= width; column += 4 * kVector) {
    strip<4>(layer, bias, input, stride, rows, column, hides, output);
  }
  for (; column + 2 * kVector <= width; column += 2 * kVector) {
    strip<2>(layer, bias, input, stride, rows, column, hides, output);
  }
  for (; column < width; column += kVector) {
    strip<1>(layer, bias, input, stride, rows, column, hides, output);
  }
}

void check(bool is_right, const char* what) {
  if (!is_right) throw std::invalid_argument(what);
}

void check_chain(const Layers& layers, size_t inputs) {
  for (const Linear& layer : layers) {
    check(layer.inputs == inputs, "layers do not fit each other");
    inputs = layer.outputs;
  }
}

}  // namespace

Linear::Linear(const float* given, const float* given_bias, size_t num_outputs, size_t num_inputs)
    : inputs(num_inputs),
      outputs(num_outputs),
      width((num_outputs + kVector - 1) / kVector * kVector),
      weight(num_inputs * width, 0.0f),
      bias(width, 0.0f) {
  for (size_t out = 0; out < outputs; ++out) {
    for (size_t in = 0; in < inputs; ++in) weight[in * width + out] = given[out * inputs + in];
    bias[out] = given_bias[out];
  }
}

Network::Network(NetworkParts parts) : parts_(std::move(parts)) {
  check(!parts_.body.empty() && !parts_.head.empty(), "a network needs a body and a head");
  size_t seen = 0;
  for (const NetworkTable& table : parts_.tables) {
    check(!table.encoder.empty() && table.rows > 0, "a table needs an encoder and rows");
    check_chain(table.encoder, table.columns + table.is_sequence);
    width_ = table.encoder.back().outputs;
    seen += width_;
    check(table.begin + table.rows * table.columns <= parts_.size,
          "a table is outside the observation");
  }
  const auto num_tables = static_cast<int>(parts_.tables.size());
  check(parts_.main < num_tables && parts_.at_hand < num_tables, "there is no such table");
  if (parts_.at_hand >= 0) seen += width_;
  check_chain(parts_.body, parts_.tables.empty() ? parts_.size : seen);
  const size_t summary = parts_.body.back().outputs;
  joined_.resize(seen);
  if (parts_.main < 0) {
    check_chain(parts_.head, summary);
    check(parts_.head.back().outputs == parts_.actions,
          "the number of scores is not the number of actions");
  } else {
    check(parts_.head.back().outputs == 1, "a row must have one score");
    const size_t rows = parts_.tables[parts_.main].rows;
    check(parts_.actions == rows + !parts_.no_op.empty(),
          "the number of scores is not the number of actions");
    check_chain(parts_.no_op, summary);
    // The summary is the same for all rows: its part of the first layer is computed once.
    Linear& first = parts_.head.front();
    check(first.inputs == width_ + summary, "layers do not fit each other");
    Linear about_summary = first;
    about_summary.inputs = summary;
    about_summary.weight.erase(about_summary.weight.begin(),
                               about_summary.weight.begin() + width_ * first.width);
    beside_.push_back(std::move(about_summary));
    first.inputs = width_;
    first.weight.resize(width_ * first.width);
    check_chain(parts_.head, width_);
  }
  const NetworkRegimes& regimes = parts_.regimes;
  if (!regimes.centres.empty()) {
    const size_t numbers = regimes.mean.size();
    check(numbers > 0 && regimes.deviation.size() == numbers &&
              regimes.centres.size() % numbers == 0 && regimes.begin + numbers <= parts_.size,
          "regimes do not fit the observation");
    weights_.resize(regimes.centres.size() / numbers);
    check(regimes.embedding.size() == summary * weights_.size(), "regimes do not fit the summary");
  }
  scores_.resize(parts_.actions);
}

// Returns the last layer's outputs, valid until the next call.
const float* Network::run(const Layers& layers, const float* input, size_t rows, bool hides_last,
                          const float* first_bias) {
  size_t stride = layers.front().inputs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Linear& layer = layers[i];
    std::vector<float>& output = buffers_[i % 2];
    if (output.size() < rows * layer.width) output.resize(rows * layer.width);
    const float* bias = i == 0 && first_bias != nullptr ? first_bias : layer.bias.data();
    const bool hides = hides_last || i + 1 < layers.size();
    apply(layer, bias, input, stride, rows, hides, output.data());
    input = output.data();
    stride = layer.width;
  }
  return input;
}

// Writes the mean of the encoded rows that are present, and the encoded first row.
void Network::encode(const NetworkTable& table, const float* observation, float* mean,
                     float* first) {
  const float* begin = observation + table.begin;
  [[maybe_unused]] const size_t columns = table.columns + table.is_sequence;
  present_.clear();
  gathered_.clear();
  for (size_t row = 0; row < table.rows; ++row) {
    const float* values = begin + row * table.columns;
    const bool is_there =
        table.is_sequence || table.is_single ||
        std::any_of(values, values + table.columns, [](float value) { return value != 0.0f; });
    if (!is_there) continue;
    present_.push_back(static_cast<int32_t>(row));
    gathered_.insert(gathered_.end(), values, values + table.columns);
    if (table.is_sequence) {
      const size_t last = std::max<size_t>(table.rows - 1, 1);
      gathered_.push_back(static_cast<float>(row) / static_cast<float>(last));
    }
  }
  const size_t count = present_.size();
  const bool is_main = parts_.main >= 0 && &table == &parts_.tables[parts_.main];
  if (is_main) {
    main_present_ = present_;
    main_rows_.resize(count * width_);
  }
  std::fill_n(mean, width_, 0.0f);
  if (first != nullptr) std::fill_n(first, width_, 0.0f);
  if (count == 0) return;
  const float* rows = run(table.encoder, gathered_.data(), count, true);
  const size_t stride = table.encoder.back().width;
  for (size_t i = 0; i < count; ++i) {
    const float* row = rows + i * stride;
    for (size_t c = 0; c < width_; ++c) mean[c] += row[c];
    if (is_main) std::copy_n(row, width_, main_rows_.data() + i * width_);
  }
  const auto number = static_cast<float>(count);
  for (size_t c = 0; c < width_; ++c) mean[c] /= number;
  if (first != nullptr && present_[0] == 0) std::copy_n(rows, width_, first);
}

const float* Network::summarise(const float* observation) {
  if (parts_.tables.empty()) return run(parts_.body, observation, 1, true);
  float* at_hand = parts_.at_hand >= 0 ? joined_.data() + joined_.size() - width_ : nullptr;
  for (size_t i = 0; i < parts_.tables.size(); ++i) {
    float* first = static_cast<int>(i) == parts_.at_hand ? at_hand : nullptr;
    encode(parts_.tables[i], observation, joined_.data() + i * width_, first);
  }
  return run(parts_.body, joined_.data(), 1, true);
}

void Network::add_regime(const float* observation) {
  const NetworkRegimes& regimes = parts_.regimes;
  const float* seen = observation + regimes.begin;
  const size_t numbers = regimes.mean.size(), count = weights_.size();
  float nearest = std::numeric_limits<float>::infinity();
  for (size_t k = 0; k < count; ++k) {
    const float* centre = regimes.centres.data() + k * numbers;
    float distance = 0.0f;
    for (size_t i = 0; i < numbers; ++i) {
      const float gap = (seen[i] - regimes.mean[i]) / regimes.deviation[i] - centre[i];
      distance += gap * gap;
    }
    weights_[k] = distance;
    nearest = std::min(nearest, distance);
  }
  float total = 0.0f;
  for (float& weight : weights_) total += weight = std::exp(nearest - weight);
  for (size_t c = 0; c < summary_.size(); ++c) {
    const float* row = regimes.embedding.data() + c * count;
    float sum = 0.0f;
    for (size_t k = 0; k < count; ++k) sum += row[k] * weights_[k];
    summary_[c] += sum / total;
  }
}

void Network::score(const float* observation, float* scores) {
  const float* made = summarise(observation);
  const size_t width = parts_.body.back().outputs;
  summary_.assign(made, made + width);
  if (!weights_.empty()) add_regime(observation);
  if (parts_.main < 0) {
    std::copy_n(run(parts_.head, summary_.data(), 1, false), parts_.actions, scores);
    return;
  }
  std::fill_n(scores, parts_.actions, 0.0f);
  if (!parts_.no_op.empty()) {
    scores[parts_.actions - 1] = run(parts_.no_op, summary_.data(), 1, false)[0];
  }
  if (main_present_.empty()) return;
  const float* beside = run(beside_, summary_.data(), 1, false);
  const std::vector<float> bias(beside, beside + beside_.front().width);
  const size_t count = main_present_.size();
  const float* found = run(parts_.head, main_rows_.data(), count, false, bias.data());
  const size_t stride = parts_.head.back().width;
  for (size_t i = 0; i < count; ++i) scores[main_present_[i]] = found[i * stride];
}

int64_t Network::choose(const float* observation, const uint8_t* mask) {
  score(observation, scores_.data());
  int64_t best = 0;
  float highest = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < parts_.actions; ++i) {
    if (mask[i] && scores_[i] > highest) {
      highest = scores_[i];
      best = static_cast<int64_t>(i);
    }
  }
  return best;
}

}  // namespace berthline
