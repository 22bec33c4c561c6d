// What the levels of an image stand for, as a network.
#pragma once

#include "loader/model.h"
#include "memory/aligned_buffer.h"

namespace phonebit::engine {

/// A network of one operator: from an input's levels to its values. Each processor computes it as it computes
/// the first operator of a network that reads levels, and so with the same bits. Stays where it is.
class LevelModel {
 public:
  LevelModel(const loader::Tensor& input, const Preprocessing& rule);
  LevelModel(const LevelModel&) = delete;
  LevelModel& operator=(const LevelModel&) = delete;

  const loader::Model& model() const { return model_; }

 private:
  memory::AlignedBuffer factors_;  // scales, then offsets
  loader::Model model_;
};

/// The rule of an input that takes levels in place of values; null for other inputs.
const Preprocessing* level_rule(const loader::Model& model, size_t input);

}  // namespace phonebit::engine
