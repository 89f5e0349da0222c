// The Python face of the native core. No other file includes nanobind or Python headers.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "simulation.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace berthline {
namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename Enum, size_t N>
Enum named(const char* const (&names)[N], const std::string& name, const char* kind) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  throw std::invalid_argument("the native core knows no " + std::string(kind) + " '" + name + "'");
}

constexpr const char* kDisciplineNames[] = {"strict", "skip", "easy", "conservative"};
constexpr const char* kPlacementNames[] = {"first-fit", "best-fit", "worst-fit", "random",
                                           "scatter"};
constexpr const char* kChangesNames[] = {"never", "time", "state"};

template <typename T>
std::vector<T> copied(const Column<T>& column) {
  return {column.data(), column.data() + column.size()};
}

// A list of (operation, word or number) pairs, as Formula.bytecode() of policies/formulas.py.
Formula formula(const nb::list& code, const std::string& changes) {
  std::vector<Instruction> instructions;
  for (nb::handle entry : code) {
    const auto pair = nb::cast<nb::tuple>(entry);
    Instruction instruction{
        named<Operation>(kOperationNames, nb::cast<std::string>(pair[0]), "operation")};
    if (instruction.operation == Operation::kWord) {
      instruction.word = named<Word>(kWordNames, nb::cast<std::string>(pair[1]), "word");
    } else if (instruction.operation == Operation::kNumber) {
      instruction.number = nb::cast<double>(pair[1]);
    }
    instructions.push_back(instruction);
  }
  return Formula(std::move(instructions), named<Changes>(kChangesNames, changes, "kind of change"));
}

// Arrays over a finished run's memory; the run lives as long as any of them.
nb::dict log_arrays(std::unique_ptr<Simulation> simulation) {
  Log& log = simulation->log();
  nb::capsule owner(simulation.release(),
                    [](void* run) noexcept { delete static_cast<Simulation*>(run); });
  const auto column = [&]<typename T>(T* data, size_t count, int64_t stride) {
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner, {stride});
  };
  nb::dict arrays;
  arrays["time"] = column(log.time.data(), log.count, 1);
  arrays["kind"] = column(log.kind.data(), log.count, 1);
  arrays["job"] = column(log.job.data(), log.count, 1);
  arrays["detail"] = column(log.detail.data(), log.count, 1);
  arrays["alloc_node"] = column(&log.shares.data()->node, log.shares.size(), 2);
  arrays["alloc_gpus"] = column(&log.shares.data()->gpus, log.shares.size(), 2);
  arrays["decisions"] = log.decisions;
  return arrays;
}

nb::dict run(Column<double> submit, Column<double> run_time, Column<double> estimate,
             Column<int32_t> gpus, Column<int32_t> cpus, Column<int64_t> memory_mib,
             Column<double> priority, Column<double> deadline, Column<int32_t> user,
             Column<int32_t> job_class, Column<double> random, Column<int32_t> node_gpus,
             Column<int32_t> node_cpus, Column<int64_t> node_memory_mib, Table<uint8_t> may_use,
             Column<int32_t> class_reason, nb::list order, const std::string& order_changes,
             nb::list gate, const std::string& gate_changes, const std::string& discipline,
             const std::string& placement, bool predicted, double first_prediction,
             double max_priority, uint64_t placement_key, double horizon, nb::object progress) {
  Inputs inputs;
  Jobs& jobs = inputs.jobs;
  jobs.count = static_cast<int32_t>(submit.size());
  jobs.submit = submit.data();
  jobs.run = run_time.data();
  jobs.estimate = estimate.data();
  jobs.gpus = gpus.data();
  jobs.cpus = cpus.data();
  jobs.memory_mib = memory_mib.data();
  jobs.priority = priority.data();
  jobs.deadline = deadline.data();
  jobs.user = user.data();
  jobs.job_class = job_class.data();
  jobs.random = random.size() > 0 ? random.data() : nullptr;
  for (size_t size : {run_time.size(), estimate.size(), gpus.size(), cpus.size(), memory_mib.size(),
                      priority.size(), deadline.size(), user.size(), job_class.size()}) {
    if (size != submit.size()) throw std::invalid_argument("job columns differ in length");
  }
  inputs.cluster.gpus = copied(node_gpus);
  inputs.cluster.cpus = copied(node_cpus);
  inputs.cluster.memory_mib = copied(node_memory_mib);
  for (size_t c = 0; c < may_use.shape(0); ++c) {
    const uint8_t* row = may_use.data() + c * may_use.shape(1);
    inputs.cluster.may_use.emplace_back(row, row + may_use.shape(1));
  }
  inputs.cluster.class_reason = copied(class_reason);
  inputs.order = formula(order, order_changes);
  inputs.gate = formula(gate, gate_changes);
  inputs.discipline = named<Discipline>(kDisciplineNames, discipline, "discipline");
  inputs.placement = named<Placement>(kPlacementNames, placement, "placement");
  inputs.predicted = predicted;
  inputs.first_prediction = first_prediction;
  inputs.max_priority = max_priority;
  inputs.placement_key = placement_key;
  inputs.horizon = horizon;

  std::unique_ptr<Simulation> simulation;
  {
    nb::gil_scoped_release unlocked;
    simulation = std::make_unique<Simulation>(std::move(inputs));
    simulation->run([&](int32_t arrived) {
      nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();  // Ctrl-C
      if (!progress.is_none()) progress(arrived);
    });
    simulation->drop_scratch();
  }
  return log_arrays(std::move(simulation));
}

template <size_t N>
std::vector<std::string> list_of(const char* const (&names)[N]) {
  return {names, names + N};
}

}  // namespace
}  // namespace berthline

NB_MODULE(_native, m) {
  using namespace berthline;
  m.doc() = "Berthline's native core. Private: use the berthline package instead.";
  m.def(
      "version", [] { return BERTHLINE_VERSION; }, "Version of Berthline this core was built for.");
#ifdef __clang__
  m.attr("compiler") = "clang " __clang_version__;
#else
  m.attr("compiler") = "gcc " __VERSION__;
#endif
  m.attr("operations") = list_of(kOperationNames);
  m.attr("words") = list_of(kWordNames);
  m.attr("disciplines") = list_of(kDisciplineNames);
  m.attr("placements") = list_of(kPlacementNames);
  m.def("run", &run, nb::kw_only(), "submit"_a, "run_time"_a, "estimate"_a, "gpus"_a, "cpus"_a,
        "memory_mib"_a, "priority"_a, "deadline"_a, "user"_a, "job_class"_a, "random"_a,
        "node_gpus"_a, "node_cpus"_a, "node_memory_mib"_a, "may_use"_a, "class_reason"_a, "order"_a,
        "order_changes"_a, "gate"_a, "gate_changes"_a, "discipline"_a, "placement"_a, "predicted"_a,
        "first_prediction"_a, "max_priority"_a, "placement_key"_a, "horizon"_a, "progress"_a.none(),
        "Simulate one run and return the columns of its log.");
}
