// Which backend runs a network on two processors: compared in its first inferences, which give results as any
// other.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "coexec/setup.h"
#include "measure/comparison.h"

namespace phonebit::engine::coexec {

/// Both processors as the plan says, or one of them alone.
enum class Candidate { plan = 0, cpu = 1, gpu = 2 };
constexpr size_t kCandidates = 3;

/// The plan takes turns with one processor alone, then the faster of these with the other one; the fastest
/// runs all other inferences. So two candidates at a time are there, and take memory. What was found is kept on
/// disk, where there is a cache directory: networks that are loaded later begin with it. Where the fastest
/// becomes slower than the others were, they are compared again.
class AutoSelection {
 public:
  using Make = std::function<std::unique_ptr<Backend>(Candidate candidate)>;

  /// Nothing is there before begin(). `model` and `setup` outlive this; where the setup's plan is not to be
  /// compared, it runs the network. `plan_key`: of device, driver, instruction set and threads.
  AutoSelection(const loader::Model& model, Setup& setup, const std::string& plan_key, const Options& options,
                std::string label, Make make);

  /// Makes who was found on disk, or else the planned candidate and who is compared with it. Throws what making
  /// the planned one throws.
  void begin();
  /// Compares with who is selected now, if anything is to be compared.
  void compare();
  /// Ends a comparison without a result; `for_good`: and there is no other one.
  void stop(bool for_good);
  /// The CPU alone runs the network from now on.
  void leave_to_cpu();

  bool is_comparing() const { return comparison_.has_value(); }
  Candidate selected() const { return selected_; }
  Backend& backend() const { return *backends_[index(selected_)]; }
  /// Null for a candidate that is not there.
  const Backend* find(Candidate candidate) const { return backends_[index(candidate)].get(); }
  /// Who is to run the next inference.
  Candidate next() const;
  Backend& next_backend() const { return *backends_[index(next())]; }
  /// What next() took for an image.
  void record(double milliseconds);
  /// What the candidates took, medians of an image; zeros before the end, and of who took no part.
  const std::array<double, kCandidates>& found_ms() const { return found_ms_; }
  /// Where the plan was not the fastest in the last comparison; else empty.
  const std::string& warning() const { return warning_; }

 private:
  static size_t index(Candidate candidate) { return static_cast<size_t>(candidate); }
  Candidate planned() const { return setup_.uses_gpu ? Candidate::plan : Candidate::cpu; }
  void make(Candidate candidate);
  /// One that is there runs the network from now on; the others' memory is freed.
  void select(Candidate candidate);
  bool begin_with_kept();
  /// Makes who is compared now; one that cannot be made is left out.
  void make_other();
  void end();
  /// select(), and a warning if it is not the plan.
  void select_fastest(Candidate fastest);
  /// What the fastest of those that do not run took; infinite where nobody was compared.
  double others_ms() const;

  Setup& setup_;
  std::string label_, kept_directory_, kept_key_;
  Make make_;
  std::array<std::unique_ptr<Backend>, kCandidates> backends_;
  Candidate selected_;
  bool is_over_;                                   // for good
  std::optional<measure::Comparison> comparison_;  // while it lasts
  std::array<double, kCandidates> found_ms_{};
  std::string warning_;
  measure::SlownessWatch watch_;  // after a comparison
};

}  // namespace phonebit::engine::coexec
