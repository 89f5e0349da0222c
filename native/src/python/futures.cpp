// Runs of a forecast, as Python calls them.

#include "core/futures.h"

#include <memory>

#include "python/bindings.h"

namespace berthline {
namespace {

class PythonFutures {
 public:
  PythonFutures(nb::dict inputs, nb::dict snapshot)
      : inputs_(inputs),
        futures_(read_inputs(inputs), read_snapshot(snapshot),
                 {nb::cast<bool>(snapshot["decides"]), nb::cast<double>(snapshot["timer"])}),
        known_(nb::cast<size_t>(snapshot["known"])) {}

  std::string run(const Column<int32_t>& rows, const Column<double>& submit,
                  const Column<double>& run, const Column<uint64_t>& draw,
                  const Column<double>& random, bool estimate_is_run, double horizon,
                  uint64_t placement_key, uint64_t refusal_key, const Column<int32_t>& watched,
                  nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> starts) {
    const size_t later = rows.size(), jobs = known_ + later;
    if (submit.size() != later || run.size() != jobs || starts.size() != watched.size() ||
        (draw.size() != 0 && draw.size() < jobs) || (random.size() != 0 && random.size() < jobs)) {
      throw std::invalid_argument("columns of a future differ in length");
    }
    const Future future{rows.data(),
                        submit.data(),
                        later,
                        run.data(),
                        draw.size() ? draw.data() : nullptr,
                        random.size() ? random.data() : nullptr,
                        estimate_is_run,
                        horizon,
                        placement_key,
                        refusal_key};
    const std::vector<int32_t> jobs_watched = copied(watched);
    nb::gil_scoped_release unlocked;
    const Futures::Ending ending = futures_.run(future, jobs_watched, starts.data());
    return Futures::kEndingNames[static_cast<int>(ending)];
  }
  void stop() { futures_.stop(); }

 private:
  nb::dict inputs_;  // owns the columns of the template
  Futures futures_;
  size_t known_;
};

}  // namespace

void bind_futures(nb::module_& m) {
  nb::class_<PythonFutures>(m, "Futures",
                            "Runs from one snapshot with other run times and later jobs.")
      .def(nb::init<nb::dict, nb::dict>(), "inputs"_a, "snapshot"_a)
      .def("run", &PythonFutures::run, "rows"_a, "submit"_a, "run"_a, "draw"_a, "random"_a,
           "estimate_is_run"_a, "horizon"_a, "placement_key"_a, "refusal_key"_a, "watched"_a,
           "starts"_a, "Write the starts of watched jobs; return how the run ended.")
      .def("stop", &PythonFutures::stop, "End the current run, from any thread.");
}

}  // namespace berthline
