// What auto-selection has found on this device, kept on disk.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "coexec/candidates.h"
#include "loader/model.h"
#include "types/options.h"

namespace phonebit::engine::coexec {

/// Who was the fastest, and median milliseconds of an image; 0 of who took no part.
struct Selection {
  Candidate fastest;
  std::array<double, kCandidates> ms;
};

/// Of a file with its plan, on a device with its driver, for options that change times. Where there is no cache
/// directory nothing is kept, silently.
class KeptSelection {
 public:
  /// `plan_key`: of device, driver, instruction set and threads.
  KeptSelection(const loader::Model& model, const std::string& plan_key, const Options& options);

  std::optional<Selection> load() const;
  void store(const Selection& selection) const;

 private:
  std::string directory_, key_;
};

}  // namespace phonebit::engine::coexec
