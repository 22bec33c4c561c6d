// One convolution without groups: kernel, geometry and packed weights. The families of convolution
// kernels differ only in types; the code that drives them is written once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/epilogue_binding.h"
#include "cpu/layer.h"
#include "memory/aligned_buffer.h"
#include "memory/arena_plan.h"

namespace phonebit::engine::cpu {

/// Bytes until the next array in the scratch memory may begin.
inline size_t align_up(size_t bytes) {
  return (bytes + memory::kArenaAlignment - 1) / memory::kArenaAlignment * memory::kArenaAlignment;
}

struct BinaryFamily {
  using Kernel = BinaryConvKernel;
  using Input = uint32_t;
  using Weight = uint32_t;
  using Sink = AccumulatorSink;
  static constexpr double kMacsPerNs = 1000.0;
};

struct U8Family {
  using Kernel = U8ConvKernel;
  using Input = uint8_t;
  using Weight = uint32_t;
  using Sink = AccumulatorSink;
  static constexpr double kMacsPerNs = 200.0;
};

struct F32Family {
  using Kernel = F32ConvKernel;
  using Input = float;
  using Weight = float;
  using Sink = Epilogue;
  static constexpr double kMacsPerNs = 40.0;
};

/// The same convolution with weights that stay halves in memory.
struct F16Family {
  using Kernel = F16ConvKernel;
  using Input = float;
  using Weight = uint16_t;
  using Sink = Epilogue;
  static constexpr double kMacsPerNs = F32Family::kMacsPerNs;
};

/// The same with weights that stay 8-bit integers in memory.
struct W8Family {
  using Kernel = W8ConvKernel;
  using Input = float;
  using Weight = int8_t;
  using Sink = Epilogue;
  static constexpr double kMacsPerNs = F32Family::kMacsPerNs;
};

/// Real weights: sums are float32, so there are no integer thresholds.
template <class Family>
constexpr bool is_real = std::is_same_v<typename Family::Sink, Epilogue>;

/// Elements of Input that one pixel takes.
template <class Family>
constexpr int pixel_elements(int channels) {
  return std::is_same_v<Family, BinaryFamily> ? words(channels) : channels;
}

/// The first kernel of a list that serves the shape; the last one serves all.
template <class Kernel>
const Kernel& choose_kernel(const Kernel* const* list, const ConvShape& shape) {
  while (list[1] != nullptr && !(*list)->supports(shape)) ++list;
  return **list;
}

inline const BinaryConvKernel& kernel_for(BinaryFamily, const Isa& isa, const ConvShape& shape) {
  return choose_kernel(isa.binary_conv, shape);
}
inline const U8ConvKernel& kernel_for(U8Family, const Isa& isa, const ConvShape& shape) {
  return choose_kernel(isa.u8_conv, shape);
}
inline const F32ConvKernel& kernel_for(F32Family, const Isa& isa, const ConvShape&) { return *isa.f32_conv; }
inline const F16ConvKernel& kernel_for(F16Family, const Isa& isa, const ConvShape&) { return *isa.f16_conv; }
inline const W8ConvKernel& kernel_for(W8Family, const Isa& isa, const ConvShape&) { return *isa.w8_conv; }

/// Memory for weights in a kernel's layout.
memory::AlignedBuffer packed_buffer(const BuildContext& context, size_t bytes);

template <class Family>
class PreparedConv {
 public:
  using Input = typename Family::Input;
  using Weight = typename Family::Weight;

  /// `thresholds`: one a channel, or null for the epilogue form. Both arrays are read when the packing list
  /// runs, into this object, which therefore never moves. Without weights, each image needs pack().
  PreparedConv(const BuildContext& context, const ConvShape& shape, const Weight* weights,
               const int32_t* thresholds)
      : kernel_(&kernel_for(Family{}, context.isa, shape)), shape_(shape) {
    packed_ = packed_buffer(context, kernel_->packed_bytes(shape_));
    if (weights != nullptr) context.packing.add([this, weights, thresholds] { pack(weights, thresholds); });
  }
  PreparedConv(const PreparedConv&) = delete;
  PreparedConv& operator=(const PreparedConv&) = delete;

  const char* name() const { return kernel_->name; }
  const ConvShape& shape() const { return shape_; }
  int pixel_tile() const { return kernel_->pixel_tile; }
  size_t packed_bytes() const { return packed_.size(); }
  size_t scratch_bytes() const { return kernel_->scratch_bytes(shape_); }
  int prepare_rows() const { return kernel_->prepare_rows(shape_); }

  void pack(const Weight* weights, [[maybe_unused]] const int32_t* thresholds) const {
    if constexpr (is_real<Family>)
      kernel_->pack_weights(shape_, weights, packed_.data());
    else
      kernel_->pack_weights(shape_, weights, thresholds, packed_.data());
  }
  void prepare(const Input* input, std::byte* scratch, int row_begin, int row_end) const {
    kernel_->prepare_input(shape_, input, scratch, row_begin, row_end);
  }
  void run(const Input* input, const std::byte* scratch, const OutputRange& range,
           const typename Family::Sink& sink) const {
    kernel_->run(shape_, packed_.data(), input, scratch, range, sink);
  }

 private:
  const typename Family::Kernel* kernel_;
  ConvShape shape_;
  memory::AlignedBuffer packed_;
};

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
RangeSplit split_output(const ConvShape& shape, int pixel_tile, size_t weight_bytes, size_t input_bytes,
                        double work_ns, int threads);

/// Multiply-accumulates of one image.
double conv_macs(const ConvShape& shape);

/// The weights of a CONV2D over float32 values as float32: in the file, or expanded from bits or halves into
/// memory that the packing list keeps.
const float* float_weights(const BuildContext& context, const loader::Op& op);

}  // namespace phonebit::engine::cpu
