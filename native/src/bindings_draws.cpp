// The Python face of random numbers; traces/draws.py is its only user.

#include "bindings.h"
#include "draws.h"

namespace berthline {
namespace {

// Tables of random numbers, of any shape and contiguous; traces/draws.py makes and fills them.
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

}  // namespace

void bind_draws(nb::module_& m) {
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
      "running_sums",
      [](Numbers<double> table, Column<double> factors) {
        const size_t rows = factors.size();
        const size_t columns = rows == 0 ? 0 : table.size() / rows;
        check_sizes(rows * columns, table.size());
        running_sums(table.data(), rows, columns, factors.data());
      },
      "table"_a.noconvert(), "factors"_a);
}

}  // namespace berthline
