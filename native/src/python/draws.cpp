// The Python interface of what generators draw with: draws/draws.h, draws/point_list.h and
// draws/fitted.h.

#include "draws/draws.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "draws/fitted.h"
#include "draws/point_list.h"
#include "python/bindings.h"

namespace berthline {
namespace {

// Contiguous tables of random numbers, of any shape; traces/generators/draws.py makes and fills
// them.
template <typename T>
using Numbers = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

void check_sizes(size_t given, size_t out) {
  if (given != out) throw std::invalid_argument("tables differ in size");
}

template <void (*fill)(const double*, size_t, double*)>
void elementwise(Numbers<const double> given, Numbers<double> out) {
  check_sizes(given.size(), out.size());
  fill(given.data(), given.size(), out.data());
}

void bind_tables(nb::module_& m) {
  m.def(
      "fill_uniform",
      [](uint64_t key, Column<int64_t> episodes, Numbers<double> out) {
        const size_t rows = episodes.size();
        const size_t columns = rows == 0 ? 0 : out.size() / rows;
        check_sizes(rows * columns, out.size());
        fill_uniform(key, episodes.data(), rows, columns, out.data());
      },
      "key"_a, "episodes"_a, "out"_a.noconvert());
  m.def("normal_quantiles", &elementwise<normal_quantiles>, "probability"_a, "out"_a.noconvert());
  m.def(
      "lognormal_quantiles",
      [](Numbers<const double> probability, double median, double sigma, Numbers<double> out) {
        check_sizes(probability.size(), out.size());
        lognormal_quantiles(probability.data(), probability.size(), median, sigma, out.data());
      },
      "probability"_a, "median"_a, "sigma"_a, "out"_a.noconvert());
  m.def("exponential_quantiles", &elementwise<exponential_quantiles>, "u"_a, "out"_a.noconvert());
  m.def("exponentials", &elementwise<exponentials>, "x"_a, "out"_a.noconvert());
  m.def(
      "count_limits",
      [](Numbers<const double> values, Column<double> limits, Numbers<int64_t> out) {
        check_sizes(values.size(), out.size());
        count_limits(values.data(), values.size(), limits.data(), limits.size(), out.data());
      },
      "values"_a, "limits"_a, "out"_a.noconvert());
  m.def(
      "choose",
      [](Numbers<const double> values, Column<double> limits, Column<int32_t> choices,
         Numbers<int32_t> out) {
        check_sizes(values.size(), out.size());
        check_sizes(limits.size() + 1, choices.size());
        choose(values.data(), values.size(), limits.data(), limits.size(), choices.data(),
               out.data());
      },
      "values"_a, "limits"_a, "choices"_a, "out"_a.noconvert());
  m.def(
      "round_within",
      [](Numbers<double> table, double low, double high) {
        round_within(table.data(), table.size(), low, high);
      },
      "table"_a.noconvert(), "low"_a, "high"_a);
  m.def(
      "running_sums",
      [](Numbers<double> table, Column<double> factors) {
        const size_t rows = factors.size();
        const size_t columns = rows == 0 ? 0 : table.size() / rows;
        check_sizes(rows * columns, table.size());
        running_sums(table.data(), rows, columns, factors.data());
      },
      "table"_a.noconvert(), "factors"_a);
}

// Several lists, one after another in `points`: list i is from begin[i] to begin[i + 1].
std::vector<PointList> read_lists(Column<double> points, Column<int64_t> begin,
                                  const std::optional<Column<double>>& heights) {
  std::vector<PointList> lists;
  for (size_t i = 0; i + 1 < begin.size(); ++i) {
    const int64_t from = begin(i), to = begin(i + 1);
    if (from > to || to > static_cast<int64_t>(points.size())) {
      throw std::invalid_argument("a list is outside its points");
    }
    std::vector<double> own;
    if (heights) own.assign(heights->data() + from, heights->data() + to);
    lists.emplace_back(std::vector<double>(points.data() + from, points.data() + to), own);
  }
  return lists;
}

struct PointLists {
  std::vector<PointList> lists;
};

void bind_fitted(nb::module_& m) {
  using Which = std::optional<Numbers<const int64_t>>;
  nb::class_<PointLists>(m, "PointLists")
      .def(
          "__init__",
          [](PointLists* self, Column<double> points, Column<int64_t> begin,
             const std::optional<Column<double>>& heights) {
            if (heights) check_sizes(points.size(), heights->size());
            new (self) PointLists{read_lists(points, begin, heights)};
          },
          "points"_a, "begin"_a, "heights"_a.none())
      .def(
          "reached",
          [](const PointLists& self, Numbers<const double> values, const Which& which,
             Numbers<int64_t> out) {
            check_sizes(values.size(), out.size());
            if (which) check_sizes(which->size(), out.size());
            for (size_t i = 0; i < values.size(); ++i) {
              const PointList& list = self.lists[which ? which->data()[i] : 0];
              out.data()[i] = static_cast<int64_t>(list.reached(values.data()[i]));
            }
          },
          "values"_a, "which"_a.none(), "out"_a.noconvert())
      .def(
          "at",
          [](const PointLists& self, Numbers<const double> x, const Which& which,
             Numbers<double> out) {
            check_sizes(x.size(), out.size());
            if (which) check_sizes(which->size(), out.size());
            for (size_t i = 0; i < x.size(); ++i) {
              const PointList& list = self.lists[which ? which->data()[i] : 0];
              out.data()[i] = list.at(x.data()[i]);
            }
          },
          "x"_a, "which"_a.none(), "out"_a.noconvert());
  m.def(
      "series_starts",
      [](Table<int64_t> length, Numbers<int64_t> out) {
        check_sizes(length.size(), out.size());
        series_starts(length.data(), length.shape(0), length.shape(1), out.data());
      },
      "length"_a, "out"_a.noconvert());
  m.def(
      "repeat_origins",
      [](Table<int64_t> user, Table<double> chance, double likely, size_t num_users,
         Numbers<int64_t> out) {
        check_sizes(user.size(), chance.size());
        check_sizes(user.size(), out.size());
        repeat_origins(user.data(), chance.data(), likely, num_users, user.shape(0), user.shape(1),
                       out.data());
      },
      "user"_a, "chance"_a, "likely"_a, "num_users"_a, "out"_a.noconvert());
  m.def(
      "bend_to_levels",
      [](Numbers<double> times, Numbers<double> heavy, Column<double> profile, int64_t start,
         Table<double> day_rate, Table<double> day_work, Column<double> week_rate,
         Column<double> week_work, Column<int64_t> first_week, double long_episode, double spread) {
        const size_t rows = first_week.size();
        const size_t jobs = rows == 0 ? 0 : times.size() / rows;
        check_sizes(rows * jobs, times.size());
        check_sizes(times.size(), heavy.size());
        check_sizes(profile.size(), 168);
        check_sizes(rows, day_rate.shape(0));
        check_sizes(day_rate.size(), day_work.size());
        check_sizes(week_rate.size(), week_work.size());
        const Levels levels{profile.data(),
                            start,
                            day_rate.data(),
                            day_work.data(),
                            day_rate.shape(1),
                            week_rate.data(),
                            week_work.data(),
                            week_rate.size(),
                            first_week.data(),
                            long_episode,
                            spread};
        bend_to_levels(levels, rows, jobs, times.data(), heavy.data());
      },
      nb::kw_only(), "times"_a.noconvert(), "heavy"_a.noconvert(), "profile"_a, "start"_a,
      "day_rate"_a, "day_work"_a, "week_rate"_a, "week_work"_a, "first_week"_a, "long_episode"_a,
      "spread"_a);
}

}  // namespace

void bind_draws(nb::module_& m) {
  bind_tables(m);
  bind_fitted(m);
}

}  // namespace berthline
