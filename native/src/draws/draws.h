// Random numbers of generated workloads, in tables of one row per episode and one column per job.
// What they are and how they are used: src/berthline/traces/generators/draws.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berthline {

// out[row][column] = uniform(key, episodes[row], column) of core/random.h.
void fill_uniform(uint64_t key, const int64_t* episodes, size_t rows, size_t columns, double* out);

// What follows below is elementwise over `count` numbers; `out` may be the input. Logarithms and
// exponentials are our own, of + - * / alone: within one unit in the last place, and the same bits
// on every machine, unlike those of the C library.

// Points below which a standard normal number stays with these probabilities; 0 counts as 2**-54.
void normal_quantiles(const double* probability, size_t count, double* out);

// median * e**(sigma * the normal quantile).
void lognormal_quantiles(const double* probability, size_t count, double median, double sigma,
                         double* out);

// -log(1 - u), for u in [0, 1).
void exponential_quantiles(const double* u, size_t count, double* out);

// Beyond +-700 as at +-700.
void exponentials(const double* x, size_t count, double* out);

// How many of the ascending limits each value has reached.
void count_limits(const double* values, size_t count, const double* limits, size_t num_limits,
                  int64_t* out);

// Of the choices, one more than limits, the one that each value's number of limits says.
void choose(const double* values, size_t count, const double* limits, size_t num_limits,
            const int32_t* choices, int32_t* out);

// The nearest whole numbers from `low` to `high`, two whole numbers below 2**51; in place.
void round_within(double* table, size_t count, double low, double high);

// Sums from the first column to each, times the row's factor; in place.
void running_sums(double* table, size_t rows, size_t columns, const double* factors);

}  // namespace berthline
