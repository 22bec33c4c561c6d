// Small models for the self-test, one op each, with random weights; random tensors, for timing, too.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "loader/model.h"

namespace phonebit::engine::gpu {

/// `images` images of a tensor: packed bits with clear tails, bytes, or multiples of 1/8 in [-4, 4].
std::vector<std::byte> random_content(const loader::Tensor& tensor, int images, std::mt19937& random);

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

/// The problems of an op (a name of KernelFamily::op). A choice is tested on those that it supports; each
/// choice supports at least one.
std::vector<std::unique_ptr<TestProblem>> test_problems(const std::string& op);

/// Names of all ops that have problems.
std::vector<std::string> tested_ops();

}  // namespace phonebit::engine::gpu
