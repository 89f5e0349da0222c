#include "draws/fitted.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace berthline {
namespace {

constexpr double kHour = 3600.0;
constexpr int64_t kHoursOfDay = 24, kHoursOfWeek = 168;
constexpr double kWeek = kHoursOfWeek * kHour;

// One row's even time at the end of each hour, and the bent times.
class Bend {
 public:
  Bend(const Levels& levels, size_t row, double length)
      : levels_(levels),
        row_(row),
        hours_((static_cast<int64_t>(length / kWeek) + 3) * kHoursOfWeek),
        rates_(static_cast<size_t>(hours_)) {
    for (int64_t hour = 0; hour < hours_; ++hour) {
      rates_[hour] = profile(hour) * levels.day_rate[day(hour)] * levels.week_rate[week(hour)];
    }
    const int64_t used = std::min(static_cast<int64_t>(std::nearbyint(length / kHour)), hours_);
    is_long_ = static_cast<double>(used) * kHour >= levels.long_episode;
    if (is_long_) {
      // Levels move jobs, but the whole row takes as long as without them.
      double even = 0.0, bent = 0.0;
      for (int64_t hour = 0; hour < used; ++hour) {
        even += profile(hour);
        bent += rates_[hour];
      }
      for (double& rate : rates_) rate *= even / bent;
    }
    passed_.resize(rates_.size() + 1);
    std::partial_sum(rates_.begin(), rates_.end(), passed_.begin() + 1);
    for (double& passed : passed_) passed *= kHour;
  }

  bool is_long() const { return is_long_; }

  // `time` must not decrease between calls.
  double at(double time) {
    while (hour_ < hours_ && passed_[hour_ + 1] <= time) ++hour_;
    const double begin = static_cast<double>(hour_) * kHour;
    if (hour_ == hours_) {  // beyond the end of the table: at its mean rate
      return begin + (time - passed_[hour_]) * (begin / passed_[hour_]);
    }
    const double end = static_cast<double>(hour_ + 1) * kHour;
    const double slope = (end - begin) / (passed_[hour_ + 1] - passed_[hour_]);
    return slope * (time - passed_[hour_]) + begin;
  }

  double heavy_at(double bent) const {
    const int64_t hour = std::min(static_cast<int64_t>(bent / kHour), hours_ - 1);
    return levels_.day_work[day(hour)] + levels_.week_work[week(hour)];
  }

 private:
  double profile(int64_t hour) const { return levels_.profile[hour % kHoursOfWeek]; }
  size_t day(int64_t hour) const {
    return row_ * levels_.num_days + static_cast<size_t>((hour + levels_.start) / kHoursOfDay);
  }
  size_t week(int64_t hour) const {
    const int64_t number = (hour + levels_.start) / kHoursOfWeek + levels_.first_week[row_];
    return static_cast<size_t>(number) % levels_.num_weeks;
  }

  const Levels& levels_;
  size_t row_;
  int64_t hours_, hour_ = 0;
  bool is_long_;
  std::vector<double> rates_, passed_;
};

void rescale(double* values, size_t count, double spread) {
  const double mean = std::accumulate(values, values + count, 0.0) / static_cast<double>(count);
  double squares = 0.0;
  for (size_t i = 0; i < count; ++i) squares += (values[i] - mean) * (values[i] - mean);
  const double own = std::sqrt(squares / static_cast<double>(count));
  if (own <= 0) return;
  for (size_t i = 0; i < count; ++i) values[i] = (values[i] - mean) * (spread / own);
}

}  // namespace

void series_starts(const int64_t* length, size_t rows, size_t jobs, int64_t* out) {
  for (size_t row = 0; row < rows; ++row) {
    size_t start = 0, next = 0;
    for (size_t job = 0; job < jobs; ++job) {
      const size_t place = row * jobs + job;
      if (job == next) {
        start = job;
        next = job + std::min(static_cast<size_t>(length[place]), jobs);
      }
      out[place] = static_cast<int64_t>(start);
    }
  }
}

void repeat_origins(const int64_t* user, const double* chance, double likely, size_t num_users,
                    size_t rows, size_t jobs, int64_t* out) {
  constexpr int64_t kNone = -1;
  std::vector<int64_t> origin(num_users, kNone);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t job = 0; job < jobs; ++job) {
      const size_t place = row * jobs + job;
      int64_t& own = origin[static_cast<size_t>(user[place])];
      if (own == kNone || chance[place] >= likely) own = static_cast<int64_t>(job);
      out[place] = own;
    }
    for (size_t job = 0; job < jobs; ++job) {
      origin[static_cast<size_t>(user[row * jobs + job])] = kNone;
    }
  }
}

void bend_to_levels(const Levels& levels, size_t rows, size_t jobs, double* times, double* heavy) {
  for (size_t row = 0; row < rows; ++row) {
    double* time = times + row * jobs;
    double* own = heavy + row * jobs;
    Bend bend(levels, row, time[jobs - 1]);
    for (size_t job = 0; job < jobs; ++job) {
      time[job] = bend.at(time[job]);
      own[job] += bend.heavy_at(time[job]);
    }
    if (bend.is_long()) rescale(own, jobs, levels.spread);
  }
}

}  // namespace berthline
