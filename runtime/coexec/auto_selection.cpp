#include "coexec/auto_selection.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "types/fail.h"

namespace phonebit::engine::coexec {
namespace {

Candidate planned(const Setup& setup) { return setup.uses_gpu ? Candidate::plan : Candidate::cpu; }

}  // namespace

AutoSelection::AutoSelection(Candidates& candidates, Setup& setup, KeptSelection kept, std::string label)
    : candidates_(candidates), setup_(setup), kept_(std::move(kept)), label_(std::move(label)) {}

void AutoSelection::begin() {
  if (begin_with_kept()) return;
  candidates_.make(candidates_.selected());
  compare();
}

bool AutoSelection::begin_with_kept() {
  const std::optional<Selection> kept = kept_.load();
  if (!kept || (!setup_.uses_gpu && kept->fastest == Candidate::plan)) return false;
  try {
    candidates_.make(kept->fastest);
  } catch (const Error&) {  // another comparison will tell
    return false;
  }
  found_ms_ = kept->ms;
  select(kept->fastest);
  return true;
}

void AutoSelection::stop(bool for_good) {
  comparison_.reset();
  is_over_ = is_over_ || for_good;
}

void AutoSelection::compare() {
  if (is_over_) return;
  std::vector<size_t> others;
  for (const Candidate candidate : kAllCandidates)
    if (candidate != candidates_.selected() && (candidate != Candidate::plan || setup_.uses_gpu))
      others.push_back(Candidates::index(candidate));
  comparison_.emplace(Candidates::index(candidates_.selected()), std::move(others));
  make_other();
}

void AutoSelection::make_other() {
  while (!comparison_->is_over()) {
    try {
      return candidates_.make(static_cast<Candidate>(comparison_->other()));
    } catch (const Error& error) {  // e.g. more memory than it may take
      setup_.add_warnings({format_text("%s: auto-selection goes on without one of its candidates: %s",
                                       label_.c_str(), error.what())});
      comparison_->drop_other();
    }
  }
  end();
}

Candidate AutoSelection::next() const {
  return comparison_ ? static_cast<Candidate>(comparison_->next()) : candidates_.selected();
}

void AutoSelection::record(double milliseconds) {
  if (!comparison_) {
    if (watch_.has_become_slow(milliseconds, others_ms())) compare();
    return;
  }
  const size_t other = comparison_->other();
  comparison_->record(milliseconds);
  if (comparison_->is_over()) return end();
  if (comparison_->other() == other) return;
  // The slower one's memory goes before the next one takes its own.
  candidates_.select(static_cast<Candidate>(comparison_->fastest()));
  make_other();
}

double AutoSelection::others_ms() const {
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kCandidates; ++i)
    if (i != Candidates::index(candidates_.selected()) && found_ms_[i] > 0.0)
      least = std::min(least, found_ms_[i]);
  return least;
}

void AutoSelection::end() {
  const auto compared = [&] {
    return std::count_if(found_ms_.begin(), found_ms_.end(), [](double ms) { return ms > 0.0; });
  };
  const bool is_first = compared() == 0;
  for (size_t i = 0; i < kCandidates; ++i) found_ms_[i] = comparison_->median_ms(i);
  const auto fastest = static_cast<Candidate>(comparison_->fastest());
  comparison_.reset();
  // What a plan loses later is of that time: networks that are loaded then begin with it, and are watched.
  if (compared() > 1 && (is_first || fastest == planned(setup_))) kept_.store({fastest, found_ms_});
  select(fastest);
}

void AutoSelection::select(Candidate fastest) {
  candidates_.select(fastest);
  static constexpr const char* kNames[] = {"the plan", "the CPU alone", "the GPU alone"};
  const size_t before = Candidates::index(planned(setup_)), after = Candidates::index(fastest);
  warning_.clear();
  if (before == after) return;
  warning_ = format_text(
      "%s: tried here, %s takes %.3g ms, %s %.3g ms; %s does everything from now "
      "on; 'phonebit plan' makes a plan by measuring",
      label_.c_str(), kNames[before], found_ms_[before], kNames[after], found_ms_[after], kNames[after]);
}

}  // namespace phonebit::engine::coexec
