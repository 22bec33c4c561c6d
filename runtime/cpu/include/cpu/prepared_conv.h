// One convolution without groups: kernel, geometry and packed weights. The families of convolution kernels
// differ only in types, which end here: the code that drives them is compiled once.
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/epilogue_binding.h"
#include "cpu/layer.h"
#include "memory/aligned_buffer.h"
#include "memory/arena_plan.h"

namespace phonebit::engine::cpu {

/// Bytes until the next array in the scratch memory may begin.
inline size_t align_up(size_t bytes) {
  return (bytes + memory::kArenaAlignment - 1) / memory::kArenaAlignment * memory::kArenaAlignment;
}

class PreparedConv {
 public:
  /// What its kernel says about the shape.
  struct Facts {
    const char* name;
    int pixel_tile, block_tile, prepare_rows;
    size_t packed_bytes, scratch_bytes;
    double macs_per_ns;  // to decide how to split work
  };

  virtual ~PreparedConv() = default;
  PreparedConv(const PreparedConv&) = delete;
  PreparedConv& operator=(const PreparedConv&) = delete;

  const char* name() const { return facts_.name; }
  const ConvShape& shape() const { return shape_; }
  int pixel_tile() const { return facts_.pixel_tile; }
  int block_tile() const { return facts_.block_tile; }
  virtual size_t packed_bytes() const { return facts_.packed_bytes; }
  size_t scratch_bytes() const { return facts_.scratch_bytes; }
  int prepare_rows() const { return facts_.prepare_rows; }
  double macs_per_ns() const { return facts_.macs_per_ns; }

  /// Has the weights packed with all others, when the packing list runs, which reads both arrays then.
  /// `thresholds`: one per channel, or null for the epilogue form.
  void add_packing(const BuildContext& context, const void* weights, const int32_t* thresholds) const;
  /// This convolution, of `op`, and twice `high` in one (BinaryPlanesKernel), with the weights that both have packed
  /// and keep. Its input is that of `high`. Null where the kernel has no such form.
  virtual std::unique_ptr<PreparedConv> with_plane(const BuildContext& /*context*/, const loader::Op& /*op*/,
                                                   const PreparedConv& /*high*/) const {
    return nullptr;
  }
  /// Packs weights of the type that prepare_conv was told.
  virtual void pack(const void* weights, const int32_t* thresholds) const = 0;
  virtual void prepare(const void* input, std::byte* scratch, int row_begin, int row_end) const = 0;
  /// Of float32 values, the sink's epilogue form.
  virtual void run(const void* input, const std::byte* scratch, const OutputRange& range,
                   const AccumulatorSink& sink) const = 0;

 protected:
  PreparedConv(const BuildContext& context, const ConvShape& shape, const Facts& facts)
      : shape_(shape), packed_(context.packing.memory(context.budget, facts.packed_bytes)), facts_(facts) {}

  const ConvShape shape_;
  std::byte* const packed_;
  const Facts facts_;
};

/// For inputs of packed bits, u8 levels or float32 values. Weights are bits, or of float values f32, f16 or i8.
std::unique_ptr<PreparedConv> prepare_conv(const BuildContext& context, const ConvShape& shape,
                                           format::DataType input, format::DataType weights);

/// A convolution's output cut in two directions: pixels and blocks of channels.
struct RangeSplit {
  Split pixels;
  Split blocks;

  int parts() const { return pixels.parts * blocks.parts; }
  OutputRange range(int part) const {
    const int pixel_part = part / blocks.parts;
    const int block_part = part % blocks.parts;
    return {pixels.begin(pixel_part), pixels.end(pixel_part), blocks.begin(block_part),
            blocks.end(block_part)};
  }
};

/// Every part reads its pixels' input and its blocks' weights. So the larger of the two is divided first; the
/// other one only as far as the first has too few pieces.
RangeSplit split_output(const ConvShape& shape, int pixel_tile, int block_tile, size_t weight_bytes,
                        size_t input_bytes, double work_ns, int threads);

/// Multiply-accumulates of one image.
double conv_macs(const ConvShape& shape);

/// The weights of a CONV2D over float32 values as float32: in the file, or expanded from bits or halves into
/// memory that the packing list keeps.
const float* float_weights(const BuildContext& context, const loader::Op& op);

}  // namespace phonebit::engine::cpu
