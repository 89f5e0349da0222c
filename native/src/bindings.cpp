// The Python face of the native core. Only it and bindings_draws.cpp know Python.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "bindings_draws.h"
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

constexpr const char* kDisciplineNames[] = {"strict", "skip", "easy", "conservative", "rounds"};
constexpr const char* kPlacementNames[] = {
    "first-fit", "best-fit", "worst-fit",       "random", "scatter", "rack-aware",
    "defrag",    "balance",  "milp-candidates", "fgd",    "formula",
};
constexpr const char* kPreemptionNames[] = {"none", "index", "defrag"};
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
nb::dict log_arrays(std::unique_ptr<Simulation> simulation, int64_t max_preemptions) {
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
  arrays["alloc_node"] = column(&log.shares.data()->node, log.shares.size(), 3);
  arrays["alloc_gpus"] = column(&log.shares.data()->gpus, log.shares.size(), 3);
  arrays["alloc_slot"] = column(&log.shares.data()->slot, log.shares.size(), 3);
  arrays["decisions"] = log.decisions;
  arrays["fallbacks"] = log.fallbacks;
  arrays["is_endless"] = log.preemptions > max_preemptions;
  return arrays;
}

// Reads named entries of a dictionary that sim/native.py makes.
class Entries {
 public:
  explicit Entries(nb::dict dict) : dict_(std::move(dict)) {}
  template <typename T>
  T get(const char* name) const {
    return nb::cast<T>(dict_[name]);
  }
  template <typename T>
  const T* column(const char* name, size_t size) const {
    // No conversion: the column must be the caller's own, which outlives the run.
    const auto found = nb::cast<Column<T>>(dict_[name], false);
    if (found.size() != size) throw std::invalid_argument("job columns differ in length");
    return found.data();
  }
  template <typename T>
  std::vector<T> copy(const char* name) const {
    return copied(get<Column<T>>(name));
  }

 private:
  nb::dict dict_;
};

Jobs read_jobs(const Entries& entries) {
  Jobs jobs;
  const size_t count = entries.get<Column<double>>("submit").size();
  jobs.count = static_cast<int32_t>(count);
  jobs.submit = entries.column<double>("submit", count);
  jobs.run = entries.column<double>("run", count);
  jobs.estimate = entries.column<double>("estimate", count);
  jobs.gpus = entries.column<int32_t>("gpus", count);
  jobs.gpu_milli = entries.column<int32_t>("gpu_milli", count);
  jobs.cpus = entries.column<int32_t>("cpus", count);
  jobs.memory_mib = entries.column<int64_t>("memory_mib", count);
  jobs.priority = entries.column<double>("priority", count);
  jobs.deadline = entries.column<double>("deadline", count);
  jobs.user = entries.column<int32_t>("user", count);
  jobs.job_class = entries.column<int32_t>("job_class", count);
  jobs.reference_speed = entries.column<double>("reference_speed", count);
  jobs.quota_set = entries.column<int32_t>("quota_set", count);
  const bool is_drawn = entries.get<Column<double>>("random").size() > 0;
  jobs.random = is_drawn ? entries.column<double>("random", count) : nullptr;
  return jobs;
}

Cluster read_cluster(const Entries& entries) {
  Cluster cluster;
  cluster.gpus = entries.copy<int32_t>("gpus");
  cluster.cpus = entries.copy<int32_t>("cpus");
  cluster.memory_mib = entries.copy<int64_t>("memory_mib");
  cluster.speed = entries.copy<double>("speed");
  cluster.rack = entries.copy<int32_t>("rack");
  cluster.gpu_type = entries.copy<int32_t>("gpu_type");
  const auto may_use = entries.get<Table<uint8_t>>("may_use");
  for (size_t c = 0; c < may_use.shape(0); ++c) {
    const uint8_t* row = may_use.data() + c * may_use.shape(1);
    cluster.may_use.emplace_back(row, row + may_use.shape(1));
  }
  cluster.class_reason = entries.copy<int32_t>("class_reason");
  cluster.borrow_class = entries.copy<int32_t>("borrow_class");
  return cluster;
}

Conditions read_conditions(const Entries& entries) {
  Conditions conditions;
  conditions.across_nodes = entries.get<double>("across_nodes");
  conditions.across_racks = entries.get<double>("across_racks");
  conditions.interference = entries.get<double>("interference");
  conditions.checkpoint = entries.get<double>("checkpoint");
  conditions.restart = entries.get<double>("restart");
  conditions.start_delay = entries.get<double>("start_delay");
  conditions.requeue_delay = entries.get<double>("requeue_delay");
  conditions.tick = entries.get<double>("tick");
  conditions.refusal_rate = entries.get<double>("refusal_rate");
  conditions.retry_delay = entries.get<double>("retry_delay");
  conditions.sleep_after = entries.get<double>("sleep_after");
  conditions.wake_delay = entries.get<double>("wake_delay");
  return conditions;
}

Formula read_formula(const Entries& entries, const std::string& name) {
  return formula(entries.get<nb::list>(name.c_str()),
                 entries.get<std::string>((name + "_changes").c_str()));
}

void read_scheduler(const Entries& entries, Inputs& inputs) {
  inputs.order = read_formula(entries, "order");
  inputs.gate = read_formula(entries, "gate");
  inputs.node_order = read_formula(entries, "node_order");
  inputs.discipline =
      named<Discipline>(kDisciplineNames, entries.get<std::string>("discipline"), "discipline");
  inputs.round_seconds = entries.get<double>("round_seconds");
  inputs.placement =
      named<Placement>(kPlacementNames, entries.get<std::string>("placement"), "placement");
  Preemption& preemption = inputs.preemption;
  preemption.kind = named<PreemptionKind>(kPreemptionNames, entries.get<std::string>("preemption"),
                                          "preemption rule");
  preemption.index = read_formula(entries, "index");
  preemption.margin = entries.get<double>("margin");
  preemption.min_run = entries.get<double>("min_run");
  preemption.max_restarts = entries.get<double>("max_restarts");
  preemption.every = entries.get<double>("every");
  preemption.moves = entries.get<int32_t>("moves");
}

// A plan made in Python: it is given the jobs and what is free, and returns (node, gpus) pairs.
Plan read_plan(nb::object function, size_t num_nodes) {
  if (function.is_none()) return {};
  return [function, num_nodes](const std::vector<int32_t>& jobs, const Nodes& free,
                               std::vector<Share>& out) {
    nb::gil_scoped_acquire locked;
    const auto column = [&](auto value) {
      auto* data = new int64_t[num_nodes];
      for (size_t node = 0; node < num_nodes; ++node) {
        data[node] = value(static_cast<int32_t>(node));
      }
      nb::capsule owner(data,
                        [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
      return nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(data, {num_nodes}, owner);
    };
    const nb::object pairs =
        function(jobs, column([&](int32_t node) { return free.free_gpus(node); }),
                 column([&](int32_t node) { return free.free_cpus(node); }),
                 column([&](int32_t node) { return free.free_memory_mib(node); }));
    for (nb::handle pair : pairs) {
      out.push_back({nb::cast<int32_t>(pair[0]), nb::cast<int32_t>(pair[1])});
    }
    return !out.empty();
  };
}

nb::dict run(nb::dict jobs, nb::dict cluster, nb::dict conditions, nb::dict scheduler,
             nb::dict quotas, nb::list outages, nb::list typical, nb::object plan, bool predicted,
             double first_prediction, double max_priority, int64_t max_preemptions,
             uint64_t placement_key, uint64_t refusal_key, double horizon, nb::object progress) {
  Inputs inputs;
  inputs.jobs = read_jobs(Entries(jobs));
  inputs.cluster = read_cluster(Entries(cluster));
  inputs.conditions = read_conditions(Entries(conditions));
  read_scheduler(Entries(scheduler), inputs);
  const Entries limits(quotas);
  inputs.quotas = {limits.copy<int64_t>("limit"), limits.copy<int32_t>("gpu_type"),
                   limits.copy<int32_t>("set_begin"), limits.copy<int32_t>("members")};
  for (nb::handle outage : outages) {
    inputs.outages.push_back(
        {nb::cast<double>(outage[0]), nb::cast<int32_t>(outage[1]), nb::cast<int>(outage[2]) != 0});
  }
  for (nb::handle job : typical) {
    inputs.typical.push_back({nb::cast<int32_t>(job[0]), nb::cast<int32_t>(job[1]),
                              nb::cast<int32_t>(job[2]), nb::cast<int64_t>(job[3]),
                              nb::cast<int32_t>(job[4]), nb::cast<int64_t>(job[5])});
  }
  inputs.plan = read_plan(plan, inputs.cluster.gpus.size());
  inputs.predicted = predicted;
  inputs.first_prediction = first_prediction;
  inputs.max_priority = max_priority;
  inputs.max_preemptions = max_preemptions;
  inputs.placement_key = placement_key;
  inputs.refusal_key = refusal_key;
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
  }
  simulation->drop_scratch();  // with the lock: a plan belongs to Python
  return log_arrays(std::move(simulation), max_preemptions);
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
  m.attr("preemptions") = list_of(kPreemptionNames);
  m.def("run", &run, nb::kw_only(), "jobs"_a, "cluster"_a, "conditions"_a, "scheduler"_a,
        "quotas"_a, "outages"_a, "typical"_a, "plan"_a.none(), "predicted"_a, "first_prediction"_a,
        "max_priority"_a, "max_preemptions"_a, "placement_key"_a, "refusal_key"_a, "horizon"_a,
        "progress"_a.none(), "Simulate one run and return the columns of its log.");
  bind_draws(m);
}
