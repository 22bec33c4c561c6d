// Which candidate runs a network: compared in its first inferences, which give results as any other.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "coexec/candidates.h"
#include "coexec/kept_selection.h"
#include "coexec/setup.h"
#include "measure/comparison.h"

namespace phonebit::engine::coexec {

/// The plan takes turns with one processor alone, then the faster of these with the other one; the fastest
/// runs all other inferences. What was found is kept on disk: networks that are loaded later begin with it.
/// Where the fastest becomes slower than the others were, they are compared again.
class AutoSelection {
 public:
  /// Nothing is compared before begin(). References outlive it.
  AutoSelection(Candidates& candidates, Setup& setup, KeptSelection kept, std::string label);

  /// Makes what was selected before, or else the planned candidate and its first opponent. Throws what making
  /// the planned one throws.
  void begin();
  /// Compares with who is selected now.
  void compare();
  /// Ends a comparison without a result; `for_good`: and there is no other one.
  void stop(bool for_good);

  bool is_comparing() const { return comparison_.has_value(); }
  /// Who is to run the next inference.
  Candidate next() const;
  /// What next() took for an image.
  void record(double milliseconds);
  /// What the candidates took, medians of an image; zeros before the end, and of who took no part.
  const std::array<double, kCandidates>& found_ms() const { return found_ms_; }
  /// Where the plan was not the fastest in the last comparison; else empty.
  const std::string& warning() const { return warning_; }

 private:
  bool begin_with_kept();
  void select(Candidate fastest);
  /// Makes who is compared now; one that cannot be made is left out.
  void make_other();
  void end();
  /// What the fastest of those that do not run took; infinite where nobody was compared.
  double others_ms() const;

  Candidates& candidates_;
  Setup& setup_;
  KeptSelection kept_;
  std::string label_;
  std::optional<measure::Comparison> comparison_;  // while it lasts
  std::array<double, kCandidates> found_ms_{};
  std::string warning_;
  bool is_over_ = false;          // for good
  measure::SlownessWatch watch_;  // after it
};

}  // namespace phonebit::engine::coexec
