// Sums over the queue and over users' jobs, kept if a formula uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/snapshot.h"

namespace berthline {

class Totals {
 public:
  void begin(size_t num_users, size_t num_classes) {
    queued_milli_ = num_users_ = 0;
    class_queued_milli_.assign(num_classes, 0);
    user_jobs_.assign(num_users, 0);
    user_seen_.assign(num_users, 0);
    usage_ = {};
    user_usage_.assign(num_users, {});
  }

  // A user has submitted a job, and it was not rejected.
  void submit(int32_t user, double now) {
    if (user_seen_[user]) return;
    user_seen_[user] = 1;
    user_usage_[user].since = now;
    ++num_users_;
  }
  void admit(int32_t user) { ++user_jobs_[user]; }
  void finish(int32_t user) { --user_jobs_[user]; }
  // A job of `milli` thousandths of GPUs enters the queue, or leaves it (negative).
  void queue(int32_t job_class, int64_t milli) {
    queued_milli_ += milli;
    class_queued_milli_[job_class] += milli;
  }
  // The same for a job that starts, or stops (negative).
  void use(int32_t user, int64_t milli, double now) {
    usage_.change(now, milli);
    user_usage_[user].change(now, milli);
  }

  // Sets the GPU-seconds that a user (-1 = all together) has used until `since`. Of users without
  // a job in this run, only the number matters.
  void recall(int32_t user, double gpu_seconds, double since) {
    if (user >= static_cast<int32_t>(user_seen_.size())) {
      ++num_users_;
      return;
    }
    if (user >= 0) submit(user, since);
    Usage& usage = user < 0 ? usage_ : user_usage_[user];
    usage.gpu_seconds = gpu_seconds;
    usage.since = since;
  }
  // The same of all users that have submitted a job, and of all together.
  std::vector<Memory::User> users() const {
    std::vector<Memory::User> found;
    for (size_t user = 0; user < user_seen_.size(); ++user) {
      const Usage& usage = user_usage_[user];
      if (user_seen_[user])
        found.push_back({static_cast<int32_t>(user), usage.gpu_seconds, usage.since, 0, {}});
    }
    found.push_back({-1, usage_.gpu_seconds, usage_.since, 0, {}});
    return found;
  }

  int64_t num_users() const { return num_users_; }
  int64_t user_jobs(int32_t user) const { return user_jobs_[user]; }
  double queued_gpus() const { return queued_milli_ / 1000.0; }
  double queued_gpus(int32_t job_class) const { return class_queued_milli_[job_class] / 1000.0; }
  double gpu_seconds(double now) const { return usage_.at(now); }
  double user_gpu_seconds(int32_t user, double now) const { return user_usage_[user].at(now); }
  double user_gpus(int32_t user) const { return user_usage_[user].milli / 1000.0; }

 private:
  // GPU-seconds used: a sum up to `since`, then a constant rate.
  struct Usage {
    double gpu_seconds = 0;
    double since = 0;
    int64_t milli = 0;
    double at(double now) const {
      return gpu_seconds + static_cast<double>(milli) / 1000 * (now - since);
    }
    void change(double now, int64_t by) {
      gpu_seconds = at(now);
      since = now;
      milli += by;
    }
  };

  int64_t queued_milli_ = 0;
  std::vector<int64_t> class_queued_milli_;
  std::vector<int64_t> user_jobs_;
  std::vector<uint8_t> user_seen_;
  int64_t num_users_ = 0;
  Usage usage_;
  std::vector<Usage> user_usage_;
};

}  // namespace berthline
