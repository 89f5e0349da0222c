// Loops of the generators that are fitted to a trace, over tables of one row per episode and one
// column per job. src/berthline/traces/generators/fitted/fitted_arrivals.py and fitted_draws.py use
// them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berthline {

// For each job, the first job of its series. length[job] is the length, 1 or more, of the series
// that begins there, if one does; the first job begins one.
void series_starts(const int64_t* length, size_t rows, size_t jobs, int64_t* out);

// For each job, the job that it repeats: itself, if it is the user's first or chance >= likely;
// otherwise the job that the user's previous job repeats. Users are numbers from 0 to num_users -
// 1.
void repeat_origins(const int64_t* user, const double* chance, double likely, size_t num_users,
                    size_t rows, size_t jobs, int64_t* out);

// Rates and work levels by hour of the week, day and week.
struct Levels {
  const double* profile;    // (168,), from time 0
  int64_t start;            // hour of the week at time 0
  const double* day_rate;   // (rows, num_days)
  const double* day_work;   // (rows, num_days)
  size_t num_days;          // enough for three weeks more than the longest row
  const double* week_rate;  // (num_weeks,)
  const double* week_work;  // (num_weeks,)
  size_t num_weeks;
  const int64_t* first_week;  // (rows,)
  double long_episode;  // seconds; rows at least this long keep their length and spread exactly
  double spread;        // standard deviation of the work levels of such a row
};

// Bends even, ascending times to the levels, and adds the work level to each job; in place.
void bend_to_levels(const Levels& levels, size_t rows, size_t jobs, double* times, double* heavy);

}  // namespace berthline
