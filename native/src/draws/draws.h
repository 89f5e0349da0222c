// Random numbers of generated workloads, in tables of one row per episode and one column per job.
// src/berthline/traces/generators/draws.py says how they are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berthline {

// out[row][column] = uniform(key, episodes[row], column) of core/random.h.
void fill_uniform(uint64_t key, const int64_t* episodes, size_t rows, size_t columns, double* out);

// The functions below are elementwise over `count` numbers; `out` may be the input. Logarithms and
// exponentials are our own and use only + - * /: they are within one unit in the last place, with
// the same bits on every machine, unlike those of the C library.

// Quantiles of the standard normal distribution; probability 0 counts as 2**-54.
void normal_quantiles(const double* probability, size_t count, double* out);

// median * e**(sigma * normal quantile).
void lognormal_quantiles(const double* probability, size_t count, double median, double sigma,
                         double* out);

// -log(1 - u), for u in [0, 1).
void exponential_quantiles(const double* u, size_t count, double* out);

// e**x; x is cut off at +-700.
void exponentials(const double* x, size_t count, double* out);

// How many of the ascending limits each value has reached.
void count_limits(const double* values, size_t count, const double* limits, size_t num_limits,
                  int64_t* out);

// out[i] = choices[number of limits that values[i] has reached]; there is one more choice than
// limits.
void choose(const double* values, size_t count, const double* limits, size_t num_limits,
            const int32_t* choices, int32_t* out);

// Rounds to the nearest integer from `low` to `high`, two integers below 2**51; in place.
void round_within(double* table, size_t count, double low, double high);

// Sums from the first column up to each, times the row's factor; in place.
void running_sums(double* table, size_t rows, size_t columns, const double* factors);

}  // namespace berthline
