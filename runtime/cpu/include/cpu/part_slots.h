// Where a part of an op lies in the tensors that the op reads and writes. Tensors are whole: a part is worked
// on in place, from its first row and channel on.
#pragma once

#include "analysis/conv_shape.h"
#include "analysis/op_part.h"
#include "cpu/layer.h"

namespace phonebit::engine::cpu {

/// Bytes of one pixel.
inline size_t pixel_bytes(const loader::Tensor& tensor) {
  return tensor.bytes() / static_cast<size_t>(tensor.pixels());
}

/// Bytes from a tensor's begin to the first pixel of `row`, and there to `channel`, which begins a word if
/// channels are packed bits.
inline size_t offset_in(const loader::Tensor& tensor, int row, int channel) {
  const bool is_bits = tensor.dtype == format::DataType::kBit;
  const int unit = is_bits ? channel / 32 : channel;
  const size_t unit_bytes =
      pixel_bytes(tensor) / static_cast<size_t>(is_bits ? tensor.words() : tensor.channels);
  return static_cast<size_t>(row) * static_cast<size_t>(tensor.width) * pixel_bytes(tensor) +
         static_cast<size_t>(unit) * unit_bytes;
}

/// Points `slot` to the part's place in an output, or in a tensor of the output's shape.
template <class T>
void bind_output(const BuildContext& context, int tensor, const OutputPart& part, T** slot) {
  context.slots.bind(tensor, slot,
                     offset_in(context.model.tensor(tensor), part.row_begin, part.channel_begin));
}

/// Points `slot` to the first row and channel of the operand that the part reads.
template <class T>
void bind_operand(const BuildContext& context, const loader::Op& op, const OutputPart& part, size_t operand,
                  T** slot) {
  const OutputPart read = analysis::part_read(context.model, op, operand, part);
  bind_output(context, op.operands[operand], read, slot);
}

/// Geometry of the part alone, between the first rows that the slots point to.
inline ConvShape conv_shape(const BuildContext& context, const loader::Op& op, const OutputPart& part) {
  return analysis::part_shape(analysis::conv_shape(context.model, op), part);
}

/// Pixels of the part.
inline int pixels_of(const BuildContext& context, const loader::Op& op, const OutputPart& part) {
  return (part.row_end - part.row_begin) * context.model.output(op).width;
}

/// Elements of the part.
inline double elements_of(const BuildContext& context, const loader::Op& op, const OutputPart& part) {
  return 1.0 * pixels_of(context, op, part) * (part.channel_end - part.channel_begin);
}

/// A layer of one phase, whose work is a run of rows or of pixels.
class SplitLayer : public Layer {
 public:
  int parts(int /*phase*/) const override { return split_.parts; }
  void run(int /*phase*/, int part, const Stop& stop) final {
    run_range(split_.begin(part), split_.end(part), stop);
  }

 protected:
  virtual void run_range(int begin, int end, const Stop& stop) = 0;
  /// The work is the part's pixels.
  void split_pixels(const BuildContext& context, const loader::Op& op, const OutputPart& part,
                    double work_ns) {
    split_ = make_split(pixels_of(context, op, part), 1, work_ns, context.threads);
  }

  Split split_;
};

/// Bytes of the part's rows in an output.
inline double row_bytes_of(const BuildContext& context, const loader::Op& op, const OutputPart& part) {
  return static_cast<double>(pixel_bytes(context.model.output(op))) * pixels_of(context, op, part);
}

}  // namespace phonebit::engine::cpu
