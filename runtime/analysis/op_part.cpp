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
  const OutputPart whole = whole_part(model, op);
  return part.row_begin == 0 && part.row_end == whole.row_end && part.channel_begin == 0 &&
         part.channel_end == whole.channel_end;
}

bool has_pixel_parts(const Op& op) { return op.traits().cuts != ops::Cuts::none; }

bool can_split_rows(const Model& model, const Op& op) {
  return has_pixel_parts(op) && model.output(op).height > 1;
}

bool can_split_channels(const Model&, const Op& op) {
  return op.traits().cuts == ops::Cuts::rows_and_channels && op.record.groups == 1;
}

namespace {

/// Rows of the input under the windows of output rows [begin, end), without regard to the map's edges.
RowRange window_rows(const cpu::ConvShape& shape, const OutputPart& part) {
  return {part.row_begin * shape.stride_h - shape.pad_top,
          (part.row_end - 1) * shape.stride_h - shape.pad_top + (shape.kernel_h - 1) * shape.dilation_h + 1};
}

RowRange inside(const RowRange& rows, int height) {
  return {std::clamp(rows.begin, 0, height), std::clamp(rows.end, 0, height)};
}

}  // namespace

RowRange rows_read(const Model& model, const Op& op, size_t operand, const OutputPart& part) {
  const std::vector<int> read = tensors_read(op);
  const int height = model.tensor(read[operand]).height;
  if (operand >= op.operands.size() && height == 1) return {0, 1};  // (1, 1, C), of a step
  const ops::Rows rows = operand < op.operands.size() ? op.traits().rows : ops::Rows::same;
  switch (rows) {
    case ops::Rows::window:
      return inside(window_rows(conv_shape(model, op), part), height);
    case ops::Rows::same:
      return {part.row_begin, part.row_end};
    case ops::Rows::padded: {
      const auto top = static_cast<int>(op.record.pad_top);
      return inside({part.row_begin - top, part.row_end - top}, height);
    }
    case ops::Rows::all:
      break;
  }
  return {0, height};
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
