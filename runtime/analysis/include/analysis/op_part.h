// A rectangle of an op's output as an op of its own: which rows it reads, what geometry it has.
#pragma once

#include "kernel_types.h"
#include "loader/model.h"
#include "types/plan.h"

namespace phonebit::engine::analysis {

OutputPart whole_part(const loader::Model& model, const loader::Op& op);
bool is_whole(const loader::Model& model, const loader::Op& op, const OutputPart& part);

/// Whether an op can be cut between rows: what a row of its output reads is a range of its operands' rows.
/// Maps of one row are not.
bool can_split_rows(const loader::Model& model, const loader::Op& op);
/// Whether it can be cut between output channels: convolutions without groups.
bool can_split_channels(const loader::Model& model, const loader::Op& op);

/// Whether each pixel of its output can be computed by itself.
bool has_pixel_parts(const loader::Op& op);

/// Output channels of packed bits are cut at multiples of this, so that both processors write whole bytes.
inline constexpr int kChannelGrain = 8;

struct RowRange {
  int begin, end;
};

/// The rows of operand `operand` (index in tensors_read(op), so steps' tensors are among them) that the part
/// reads, limited to the map. A (1, 1, C) tensor of a step gives its one row. CoDL, eq. 1, solved for the
/// input.
RowRange rows_read(const loader::Model& model, const loader::Op& op, size_t operand, const OutputPart& part);

/// The geometry of the part alone: out_h and out_c are the part's, in_h is rows_read(0), top and bottom
/// padding what of it the part still reaches. So any kernel computes the part from pointers to its first
/// input row and its first output element, if it is told how far apart the output's pixels are.
cpu::ConvShape part_shape(const cpu::ConvShape& whole, const OutputPart& part);

}  // namespace phonebit::engine::analysis
