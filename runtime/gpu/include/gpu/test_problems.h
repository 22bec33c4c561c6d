// Small models for the self-test: one op each, with random weights.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "loader/model.h"

namespace phonebit::engine::gpu {

/// A model of one op that owns its constants. All values are small dyadic fractions, so that float sums are
/// exact in any order and results must be equal. Deterministic.
class TestProblem {
 public:
  std::string description;  ///< "7x9x64 -> 40 channels, window 3x3, ..., thresholds"
  loader::Model model;
  float tolerance = 0.0f;  ///< of float results

  /// Random operands of the op for two images: packed bits, u8 or floats.
  std::vector<std::vector<std::byte>> operands() const;

 private:
  friend class ProblemBuilder;
  std::vector<std::vector<uint32_t>> memory_;  // of the constants
};

/// The problems of an op (a name of KernelFamily::op). A choice is tested on those that it can serve; each
/// choice can serve at least one.
std::vector<std::unique_ptr<TestProblem>> test_problems(const std::string& op);

/// Names of all ops that have problems.
std::vector<std::string> tested_ops();

}  // namespace phonebit::engine::gpu
