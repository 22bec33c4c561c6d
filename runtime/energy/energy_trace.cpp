#include "energy/energy_trace.h"

#include <algorithm>
#include <utility>

#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

/// A source has stopped when nothing changed for so many seconds, and for so many times the longest pause
/// between two changes before.
constexpr double kStaleSeconds = 5.0;
constexpr double kStalePauses = 10.0;

std::vector<bool> counted_rails(const std::vector<Rail>& rails) {
  std::vector<bool> is_counted;
  for (const Rail& rail : rails) is_counted.push_back(rail.is_counted);
  return is_counted;
}

}  // namespace

double Span::uncertainty() const { return energy_mj > 0.0 ? std::min(1.0, step_mj / energy_mj) : 1.0; }

double Span::update_s() const { return window_s / static_cast<double>(std::max<size_t>(1, changes)); }

void check_goes_on(const Span& span, const std::string& source) {
  if (span.has_stopped)
    fail(ErrorCode::device,
         "%s: the source has stopped: it shows nothing new; choose another source, or measure again",
         source.c_str());
}

Trace::Trace(std::vector<bool> is_counted, bool is_counter, double unit_mj)
    : is_counted_(std::move(is_counted)),
      is_counter_(is_counter),
      unit_mj_(unit_mj),
      flowed_mj_(is_counted_.size(), 0.0) {}

Trace::Trace(const SourceInfo& info) : Trace(counted_rails(info.rails), info.is_counter, info.unit_mj) {}

void Trace::add(double time_s, const std::vector<double>& reading) {
  if (reading.size() != is_counted_.size())
    fail(ErrorCode::input, "reading: got %zu values, expected %zu: one of each rail", reading.size(),
         is_counted_.size());
  if (count_++ == 0) {
    first_s_ = last_s_ = changed_s_ = time_s;
    first_ = last_ = reading;
    return;
  }
  const bool is_change = differs(reading);
  for (size_t i = 0; i < reading.size(); ++i) {
    if (is_counter_)
      flowed_mj_[i] = reading[i] - first_[i];
    else
      flowed_mj_[i] += (reading[i] + last_[i]) / 2 * (time_s - last_s_);
  }
  last_s_ = time_s;
  last_ = reading;
  if (is_change) note_change();
}

Span Trace::span() const {
  if (count_ < 2) fail(ErrorCode::input, "energy trace: got %zu readings, expected two or more", count_);
  Span span;
  span.window_s = last_s_ - first_s_;
  span.rails_mj = flowed_mj_;
  span.energy_mj = counted_mj();
  span.step_mj = std::max(unit_mj_, largest_step_mj());
  span.changes = changes_;
  // A source without any change is perhaps just slow: who measures decides how long to wait for the first.
  span.has_stopped = changes_ > 0 && last_s_ - changed_s_ > std::max(kStaleSeconds, kStalePauses * pause_s_);
  return span;
}

bool Trace::differs(const std::vector<double>& reading) const {
  for (size_t i = 0; i < reading.size(); ++i) {
    if (is_counted_[i] && reading[i] != last_[i]) return true;
  }
  return false;
}

void Trace::note_change() {
  const double sum_mj = counted_mj();
  ++changes_;
  step_mj_ = std::max(step_mj_, sum_mj - changed_mj_);
  pause_s_ = std::max(pause_s_, last_s_ - changed_s_);
  changed_mj_ = sum_mj;
  changed_s_ = last_s_;
}

double Trace::counted_mj() const {
  double sum = 0.0;
  for (size_t i = 0; i < flowed_mj_.size(); ++i) {
    if (is_counted_[i]) sum += flowed_mj_[i];
  }
  return sum;
}

double Trace::largest_step_mj() const {
  if (changes_ == 0) return counted_mj();
  // What has not yet shown up after the last change, at the mean power until then.
  const double unseen_mj = changed_mj_ / (changed_s_ - first_s_) * (last_s_ - changed_s_);
  return std::max(step_mj_, unseen_mj);
}

}  // namespace phonebit::engine::energy
