// Small neural networks in float32: the scores of actions for one observation, without waiting.
//
// The shapes are those of learn/networks/networks.py: `mlp`, where one perceptron sees all numbers,
// and `kernel`, where the rows of each table go through a perceptron one by one, their means are
// summed up, and each row of the main table is scored beside the summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berthline {

// A linear layer. Weights stand input by input, so that a loop over outputs is one over neighbours;
// outputs are padded with zeros to whole vectors.
struct Linear {
  size_t inputs = 0;
  size_t outputs = 0;
  size_t width = 0;  // outputs, padded
  std::vector<float> weight;
  std::vector<float> bias;

  // From (outputs, inputs), as torch has it.
  Linear(const float* weight, const float* bias, size_t outputs, size_t inputs);
};

// Linear layers with ReLU between them, and after the last one if it is a hidden one.
using Layers = std::vector<Linear>;

// A part of the observation. Rows of zeros are not there.
struct NetworkTable {
  size_t begin = 0;
  size_t rows = 0;
  size_t columns = 0;
  bool is_sequence = false;  // a column of numbers; where each stands is its second one
  bool is_single = false;    // one row, there even if all of it is 0
  Layers encoder;
};

struct NetworkParts {
  size_t size = 0;                   // of an observation
  size_t actions = 0;                // scores
  std::vector<NetworkTable> tables;  // empty = the body sees the observation as it is
  int main = -1;     // the table whose rows are scored; -1 = the summary makes all scores
  int at_hand = -1;  // the table whose first row the body sees too; -1 = none
  Layers body;
  Layers head;   // of a row, and of the summary beside it; or of the summary
  Layers no_op;  // of the summary; empty = every action is a row
};

class Network {
 public:
  explicit Network(NetworkParts parts);
  size_t size() const { return parts_.size; }
  size_t actions() const { return parts_.actions; }
  // Writes the score of every action; rows that are not there get 0.
  void score(const float* observation, float* scores);
  // The best-scored action of those allowed, the first of equals; 0 if none is.
  int64_t choose(const float* observation, const uint8_t* mask);

 private:
  const float* summarise(const float* observation);
  void encode(const NetworkTable& table, const float* observation, float* mean, float* first);
  const float* run(const Layers& layers, const float* input, size_t rows, bool hides_last,
                   const float* first_bias = nullptr);

  NetworkParts parts_;
  std::vector<Linear> beside_;  // the part of the head's first layer that is about the summary
  size_t width_ = 0;            // of an encoded row
  std::vector<float> gathered_, main_rows_, joined_, summary_, scores_;
  std::vector<int32_t> present_, main_present_;
  std::vector<float> buffers_[2];
};

}  // namespace berthline
