#include "python/rules.h"

#include <memory>
#include <string>
#include <vector>

namespace berthline {
namespace {

std::vector<Formula> read_formulas(const nb::list& pairs) {
  std::vector<Formula> formulas;
  for (nb::handle pair : pairs) formulas.push_back(read_formula(pair));
  return formulas;
}

SchedulerParts read_parts(const Entries& entries) {
  SchedulerParts parts;
  parts.order = read_formula(entries, "order");
  parts.gate = read_formula(entries, "gate");
  parts.node_order = read_formula(entries, "node_order");
  parts.discipline =
      named<Discipline>(kDisciplineNames, entries.get<std::string>("discipline"), "discipline");
  parts.placement = placement_named(entries.get<std::string>("placement"));
  return parts;
}

}  // namespace

SeatRules read_seat(const Entries& entries) {
  SeatRules rules;
  rules.seat = named<Seat>(kSeatNames, entries.get<std::string>("seat"), "seat");
  rules.window = entries.get<int32_t>("window");
  rules.window_policy =
      named<Window>(kWindowNames, entries.get<std::string>("window_policy"), "window policy");
  rules.tops = read_formulas(entries.get<nb::list>("tops"));
  rules.running_window = entries.get<int32_t>("running_window");
  rules.running_order = read_formula(entries, "running_order");
  rules.semantics =
      named<Semantics>(kSemanticsNames, entries.get<std::string>("semantics"), "semantics");
  rules.reranks = entries.get<bool>("reranks");
  rules.no_op = named<NoOp>(kNoOpNames, entries.get<std::string>("no_op"), "no_op");
  rules.protects_head = entries.get<bool>("protects_head");
  for (nb::handle parts : entries.get<nb::list>("menu")) {
    rules.menu.push_back(read_parts(Entries(nb::cast<nb::dict>(parts))));
  }
  for (nb::handle parts : entries.get<nb::list>("experts")) {
    rules.experts.push_back(read_parts(Entries(nb::cast<nb::dict>(parts))));
  }
  rules.has_credit = entries.get<bool>("has_credit");
  rules.credit_answer = entries.get<int64_t>("credit_answer");
  rules.every_events = entries.get<int32_t>("every_events");
  rules.every_seconds = entries.get<double>("every_seconds");
  rules.max_holds = entries.get<int32_t>("max_holds");
  rules.hold_seconds = entries.get<double>("hold_seconds");
  rules.recheck = entries.get<double>("recheck");
  rules.horizon_factor = entries.get<double>("horizon_factor");
  rules.max_steps = entries.get<int64_t>("max_steps");
  return rules;
}

ObservationRules read_observation(const Entries& entries) {
  ObservationRules rules;
  rules.jobs = read_formulas(entries.get<nb::list>("jobs"));
  rules.nodes = read_formulas(entries.get<nb::list>("nodes"));
  rules.running = read_formulas(entries.get<nb::list>("running"));
  rules.globals = read_formulas(entries.get<nb::list>("globals"));
  rules.look_ahead =
      named<LookAhead>(kLookAheadNames, entries.get<std::string>("look_ahead"), "look-ahead");
  rules.look_ahead_size = entries.get<int32_t>("look_ahead_size");
  rules.look_ahead_seconds = entries.get<double>("look_ahead_seconds");
  return rules;
}

Inputs read_agent_inputs(const nb::dict& inputs, const ObservationRules& observed) {
  Inputs run = read_inputs(inputs);
  for (const auto* formulas : {&observed.jobs, &observed.running, &observed.globals}) {
    run.watched.insert(run.watched.end(), formulas->begin(), formulas->end());
  }
  run.watched.insert(run.watched.end(), observed.nodes.begin(), observed.nodes.end());
  run.lists_running = observed.look_ahead > LookAhead::kOff;
  for (const Formula& formula : observed.running) {
    // Of jobs by expected end, these are not kept (core/running_by_end.h).
    for (const Word word : {Word::kWait, Word::kRunning, Word::kBorrowedGpus}) {
      run.lists_running |= formula.uses(word);
    }
  }
  run.may_fail = nb::cast<bool>(inputs["may_fail"]);
  return run;
}

RewardRules read_rewards(const Entries& entries) {
  RewardRules rules;
  for (nb::handle term : entries.get<nb::list>("terms")) {
    rules.terms.push_back(
        {named<Occasion>(kOccasionNames, nb::cast<std::string>(term[0]), "occasion"),
         read_formula(term[1])});
  }
  const auto baseline = entries.get<nb::object>("baseline");
  if (!baseline.is_none()) {
    rules.baseline = std::make_unique<Inputs>(read_inputs(nb::cast<nb::dict>(baseline)));
    rules.baseline->may_fail = nb::cast<bool>(baseline["may_fail"]);
  }
  rules.sleep_w = entries.get<double>("sleep_w");
  rules.idle_w = entries.copy<double>("idle_w");
  rules.peak_w = entries.copy<double>("peak_w");
  return rules;
}

}  // namespace berthline
