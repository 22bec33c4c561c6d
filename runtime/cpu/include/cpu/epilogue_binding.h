// The epilogue of an op with its constants and tensors resolved to pointers.
#pragma once

#include <vector>

#include "cpu/layer.h"
#include "memory/aligned_buffer.h"

namespace phonebit::engine::cpu {

/// Owns the step table that Epilogue points to. TensorSlots keep pointers into this object, so it never
/// moves.
class EpilogueBinding {
 public:
  EpilogueBinding(const BuildContext& context, const loader::Op& op, const OutputPart& part);
  EpilogueBinding(const EpilogueBinding&) = delete;
  EpilogueBinding& operator=(const EpilogueBinding&) = delete;

  /// Lets the epilogue of a whole layer write the planes of BIT_PLANES `op` in place of the levels that it counts
  /// last, where it can: else returns false.
  bool bind_planes(const BuildContext& context, const loader::Op& op);
  /// Whether to do so from now on.
  void write_planes(bool on) { writes_planes_ = on && planes_.plane_count > 0; }

  /// For element-wise layers: lets each row of the map count as one pixel, so that a few channels, as of images, fill
  /// vectors. Returns false, and changes nothing, where there are bits or steps that need to know the pixel.
  bool join_rows(const loader::Op& op, int width);

  const Epilogue& epilogue() const { return writes_planes_ ? planes_ : epilogue_; }
  /// For kernels with integer accumulators; thresholds of type I32 select the threshold form.
  AccumulatorSink accumulator_sink() const { return {threshold_bits_, epilogue_.pixel_words, &epilogue()}; }
  bool has_integer_threshold() const { return has_integer_threshold_; }

 private:
  std::vector<EpilogueStep> steps_;
  memory::AlignedBuffer row_factors_;  // of steps, for each channel of a joined row
  Epilogue epilogue_{};
  Epilogue planes_{};
  bool writes_planes_ = false;
  uint32_t* threshold_bits_ = nullptr;
  bool has_integer_threshold_;
};

/// Rough nanoseconds of the steps for one element, to decide how to split work.
double epilogue_ns_per_element(const loader::Op& op);

}  // namespace phonebit::engine::cpu
