// Turns the dictionaries that sim/native.py makes of a snapshot into the core's, and back.

#include "python/bindings.h"

namespace berthline {
namespace {

constexpr size_t kProgressColumns = 6, kUserColumns = 5;

// A copy, as an array of Python's.
template <typename T>
nb::ndarray<nb::numpy, T> array_of(const std::vector<T>& values, std::vector<size_t> shape) {
  auto* data = new T[values.size()];
  std::copy(values.begin(), values.end(), data);
  nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return {data, shape.size(), shape.data(), owner};
}

SeatMemory read_seat_memory(const Entries& entries) {
  SeatMemory seat;
  seat.wake = entries.get<double>("wake");
  seat.committed = entries.get<int32_t>("committed");
  seat.ruler = entries.get<int64_t>("ruler");
  seat.decisions_left = entries.get<int64_t>("decisions_left");
  seat.ask_again = entries.get<double>("ask_again");
  seat.holds = entries.copy<int32_t>("holds");
  seat.held_until = entries.copy<double>("held_until");
  seat.gpu_holders = entries.copy<int32_t>("gpu_holders");
  seat.again = entries.copy<double>("checked_again");
  return seat;
}

Memory read_memory(const Entries& entries) {
  Memory memory;
  memory.at = entries.get<double>("memory_at");
  memory.rows = entries.get<size_t>("memory_rows");
  memory.known = entries.get<int32_t>("memory_known");
  memory.pending = {entries.get<bool>("decides"), entries.get<double>("timer")};
  memory.predicted = entries.copy<double>("predicted");
  const auto progress = entries.get<Table<double>>("progress");
  for (size_t i = 0; i < progress.shape(0); ++i) {
    const double* row = progress.data() + i * kProgressColumns;
    memory.progress.push_back({row[0], row[1], row[2], row[3], row[4], row[5]});
  }
  memory.idle_since = entries.copy<double>("idle_since");
  memory.submissions = entries.copy<double>("submissions");
  const auto ids = entries.get<Column<int32_t>>("users");
  const auto usage = entries.get<Table<double>>("usage");
  for (size_t i = 0; i < ids.size(); ++i) {
    const double* row = usage.data() + i * kUserColumns;
    memory.users.push_back(
        {ids.data()[i], row[0], row[1], static_cast<int32_t>(row[2]), {row[3], row[4]}});
  }
  memory.max_priority = entries.get<double>("max_priority");
  memory.gittins.count = entries.copy<int64_t>("gittins_count");
  memory.gittins.gpu_seconds = entries.copy<double>("gittins_gpu_seconds");
  memory.gittins.index = entries.copy<double>("gittins_index");
  memory.gittins.finished = entries.get<int64_t>("gittins_finished");
  memory.gittins.next_update = entries.get<int64_t>("gittins_next_update");
  memory.seat = read_seat_memory(entries);
  return memory;
}

}  // namespace

Snapshot read_snapshot(const nb::dict& snapshot) {
  const Entries all(snapshot);
  Snapshot from;
  from.now = all.get<double>("now");
  from.known = all.get<int32_t>("known");
  from.decisions = all.get<int64_t>("decisions");
  const auto time = all.get<Column<double>>("time");
  const auto kind = all.get<Column<uint8_t>>("kind");
  const auto job = all.get<Column<int32_t>>("job");
  const auto detail = all.get<Column<int32_t>>("detail");
  from.rows.resize(time.size());
  for (size_t i = 0; i < time.size(); ++i) {
    from.rows[i] = {time.data()[i], job.data()[i], detail.data()[i],
                    static_cast<Log::Kind>(kind.data()[i])};
  }
  const auto node = all.get<Column<int32_t>>("alloc_node");
  const auto gpus = all.get<Column<int32_t>>("alloc_gpus");
  const auto slot = all.get<Column<int32_t>>("alloc_slot");
  for (size_t i = 0; i < node.size(); ++i) {
    from.shares.push_back({node.data()[i], gpus.data()[i], slot.data()[i]});
  }
  from.memory = read_memory(all);
  return from;
}

nb::dict memory_columns(const Memory& memory) {
  std::vector<double> progress, usage;
  std::vector<int32_t> ids;
  for (const Memory::Progress& job : memory.progress) {
    progress.insert(progress.end(),
                    {job.progress, job.kept, job.since, job.rate, job.planned, job.delay});
  }
  for (const Memory::User& user : memory.users) {
    ids.push_back(user.user);
    usage.insert(usage.end(), {user.gpu_seconds, user.since, static_cast<double>(user.num_runs),
                               user.runs[0], user.runs[1]});
  }
  nb::dict found;
  const auto column = [&]<typename T>(const std::vector<T>& values) {
    return array_of(values, {values.size()});
  };
  found["predicted"] = column(memory.predicted);
  found["progress"] = array_of(progress, {memory.progress.size(), kProgressColumns});
  found["idle_since"] = column(memory.idle_since);
  found["users"] = column(ids);
  found["usage"] = array_of(usage, {ids.size(), kUserColumns});
  found["max_priority"] = memory.max_priority;
  found["gittins_count"] = column(memory.gittins.count);
  found["gittins_gpu_seconds"] = column(memory.gittins.gpu_seconds);
  found["gittins_index"] = column(memory.gittins.index);
  found["gittins_finished"] = memory.gittins.finished;
  found["gittins_next_update"] = memory.gittins.next_update;
  return found;
}

nb::dict seat_memory_columns(const SeatMemory& seat) {
  nb::dict found;
  found["wake"] = seat.wake;
  found["committed"] = seat.committed;
  found["ruler"] = seat.ruler;
  found["decisions_left"] = seat.decisions_left;
  found["ask_again"] = seat.ask_again;
  found["holds"] = array_of(seat.holds, {seat.holds.size()});
  found["held_until"] = array_of(seat.held_until, {seat.held_until.size()});
  found["gpu_holders"] = array_of(seat.gpu_holders, {seat.gpu_holders.size()});
  found["checked_again"] = array_of(seat.again, {seat.again.size()});
  return found;
}

}  // namespace berthline
