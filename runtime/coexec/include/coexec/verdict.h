// What trials have found on this device, kept on disk.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "coexec/trial.h"
#include "loader/model.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

/// Who won, and median milliseconds of an image; 0 of who took no part.
struct Verdict {
  Runner winner;
  std::array<double, kRunners> ms;
};

/// The verdict of a file with its plan, on a device with its driver, for options that change times. Where
/// there is no cache directory nothing is kept, silently.
class KeptVerdict {
 public:
  /// `plan_key`: of device, driver, instruction set and threads.
  KeptVerdict(const loader::Model& model, const std::string& plan_key, const Options& options);

  std::optional<Verdict> load() const;
  void store(const Verdict& verdict) const;

 private:
  std::string directory_, key_;
};

}  // namespace phonebit::engine::coexec
