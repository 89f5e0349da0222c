// Small neural networks in float32: the scores of actions for one observation, with low latency.
//
// The shapes are those of learn/networks/networks.py: `mlp`, where one perceptron sees all numbers,
// and `kernel`, where a perceptron encodes each row of each table, a body summarises the means, and
// each row of the main table is scored together with the summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berthline {

// A linear layer. Weights are stored input by input, so that a loop over outputs reads adjacent
// memory; outputs are padded with zeros to whole vectors.
struct Linear {
  size_t inputs = 0;
  size_t outputs = 0;
  size_t width = 0;  // outputs, padded
  std::vector<float> weight;
  std::vector<float> bias;

  // From (outputs, inputs), the layout of torch.
  Linear(const float* weight, const float* bias, size_t outputs, size_t inputs);
};

// Linear layers with ReLU between them, and after the last one if it is hidden.
using Layers = std::vector<Linear>;

// A part of the observation. Rows of zeros count as absent.
struct NetworkTable {
  size_t begin = 0;
  size_t rows = 0;
  size_t columns = 0;
  bool is_sequence = false;  // a column of numbers; the position is added as a second column
  bool is_single = false;    // one row, present even if all of it is 0
  Layers encoder;
};

// The regimes of a network (`Regimes` in networks.py): a mixture of centres, by the distance of the
// cluster-wide numbers from each, whose embedding is added to the summary.
struct NetworkRegimes {
  size_t begin = 0;  // of the numbers in an observation
  std::vector<float> mean, deviation;
  std::vector<float> centres;    // (centres, numbers); empty = there are no regimes
  std::vector<float> embedding;  // (width of the summary, centres), the layout of torch
};

struct NetworkParts {
  size_t size = 0;                   // of an observation
  size_t actions = 0;                // number of scores
  std::vector<NetworkTable> tables;  // empty = the body sees the observation as it is
  int main = -1;     // the table whose rows are scored; -1 = the summary gives all scores
  int at_hand = -1;  // the table whose first row the body also sees; -1 = none
  Layers body;
  Layers head;   // input: a row and the summary, or the summary only
  Layers no_op;  // input: the summary; empty = every action is a row
  NetworkRegimes regimes;
};

class Network {
 public:
  explicit Network(NetworkParts parts);
  size_t size() const { return parts_.size; }
  size_t actions() const { return parts_.actions; }
  // Writes the score of every action; absent rows get 0.
  void score(const float* observation, float* scores);
  // The allowed action with the highest score, the first of equals; 0 if none is allowed.
  int64_t choose(const float* observation, const uint8_t* mask);

 private:
  const float* summarise(const float* observation);
  void add_regime(const float* observation);  // to summary_
  void encode(const NetworkTable& table, const float* observation, float* mean, float* first);
  const float* run(const Layers& layers, const float* input, size_t rows, bool hides_last,
                   const float* first_bias = nullptr);

  NetworkParts parts_;
  std::vector<Linear> beside_;  // the summary's part of the head's first layer
  size_t width_ = 0;            // of an encoded row
  std::vector<float> gathered_, main_rows_, joined_, summary_, scores_, weights_;
  std::vector<int32_t> present_, main_present_;
  std::vector<float> buffers_[2];
};

}  // namespace berthline
