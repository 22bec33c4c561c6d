// Which checks of constants' content have passed already.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>

#include "loader/model.h"

namespace phonebit::engine::loader {

/// Thousands of ops may share one constant of megabytes; each content is read once for each thing that it is
/// checked for.
class ContentChecks {
 public:
  enum class Kind { tails, halves, bytes, indices };

  /// Whether this check, with this parameter, is still to be made. It counts as passed from now on, since a
  /// check that fails ends the load.
  bool is_due(const Constant& constant, Kind kind, int64_t parameter = 0) {
    return passed_.insert({constant.data, constant.count, kind, parameter}).second;
  }

 private:
  std::set<std::tuple<const std::byte*, uint64_t, Kind, int64_t>> passed_;
};

}  // namespace phonebit::engine::loader
