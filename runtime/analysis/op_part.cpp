#include "analysis/op_part.h"

#include <algorithm>

#include "analysis/conv_shape.h"
#include "analysis/op_tensors.h"

namespace phonebit::engine::analysis {

using loader::Model;
using loader::Op;
using loader::Tensor;

OutputPart whole_part(const Model& model, const Op& op) {
  const Tensor& out = model.output(op);
  return {0, out.height, 0, out.channels};
}

bool is_whole(const Model& model, const Op& op, const OutputPart& part) {
  return part == whole_part(model, op);
}

bool has_pixel_parts(const Op& op) { return op.traits().cuts != ops::Cuts::none; }

bool can_split_rows(const Model& model, const Op& op) {
  return has_pixel_parts(op) && model.output(op).height > 1;
}

bool can_split_channels(const Model&, const Op& op) {
  const ops::Operator& traits = op.traits();
  return traits.cuts == ops::Cuts::rows_and_channels &&
         (traits.channels == ops::Channels::same || op.record.groups == 1);
}

OutputPart whole_words(const Model& model, const Op& op, const OutputPart& part) {
  OutputPart words = part;
  words.channel_begin -= words.channel_begin % 32;
  words.channel_end = std::min(32 * cpu::words(part.channel_end), model.output(op).channels);
  return words;
}

namespace {

struct RowRange {
  int begin, end;
};

/// Rows of the input under the windows of output rows [begin, end), without regard to the map's edges.
RowRange window_rows(const cpu::ConvShape& shape, const OutputPart& part) {
  return {part.row_begin * shape.stride_h - shape.pad_top,
          (part.row_end - 1) * shape.stride_h - shape.pad_top + (shape.kernel_h - 1) * shape.dilation_h + 1};
}

RowRange inside(const RowRange& rows, int height) {
  return {std::clamp(rows.begin, 0, height), std::clamp(rows.end, 0, height)};
}

}  // namespace

OutputPart part_read(const Model& model, const Op& op, size_t operand, const OutputPart& part) {
  const Tensor& tensor = model.tensor(tensors_read(op)[operand]);
  const bool is_of_step = operand >= op.operands.size();
  OutputPart read = part;
  if (!is_of_step && op.traits().channels == ops::Channels::all) {
    read.channel_begin = 0;
    read.channel_end = tensor.channels;
  }
  const ops::Rows rows = !is_of_step          ? op.traits().rows
                         : tensor.height == 1 ? ops::Rows::all  // (1, 1, C)
                                              : ops::Rows::same;
  RowRange range{part.row_begin, part.row_end};
  switch (rows) {
    case ops::Rows::window:
      range = window_rows(conv_shape(model, op), part);
      break;
    case ops::Rows::same:
      break;
    case ops::Rows::padded:
      range.begin -= static_cast<int>(op.record.pad_top);
      range.end -= static_cast<int>(op.record.pad_top);
      break;
    case ops::Rows::all:
      range = {0, tensor.height};
      break;
  }
  range = inside(range, tensor.height);
  read.row_begin = range.begin;
  read.row_end = range.end;
  return read;
}

cpu::ConvShape part_shape(const cpu::ConvShape& whole, const OutputPart& part) {
  const RowRange window = window_rows(whole, part);
  const RowRange read = inside(window, whole.in_h);
  cpu::ConvShape shape = whole;
  shape.in_h = read.end - read.begin;
  shape.out_h = part.row_end - part.row_begin;
  shape.out_c = part.channel_end - part.channel_begin;
  shape.pad_top = read.begin - window.begin;
  shape.pad_bottom = window.end - read.end;
  return shape;
}

}  // namespace phonebit::engine::analysis
