// A rectangle of an op's output as an op of its own: what it reads, what geometry it has.
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
/// Whether it can be cut between output channels: convolutions without groups, and ops that read the channels
/// that they write.
bool can_split_channels(const loader::Model& model, const loader::Op& op);

/// Whether each pixel of its output can be computed by itself.
bool has_pixel_parts(const loader::Op& op);

/// Output channels of packed bits are cut at multiples of this, so that both processors write whole bytes.
inline constexpr int kChannelGrain = 8;

/// What the CPU computes for a part: whole words of packed bits, which its kernels write.
OutputPart whole_words(const loader::Model& model, const loader::Op& op, const OutputPart& part);

/// What the part reads of operand `operand` (index in tensors_read(op), so steps' tensors are among them),
/// limited to the map: no rows where it reads only padding. A (1, 1, C) tensor of a step gives its one row.
/// CoDL, eq. 1, solved for the input.
OutputPart part_read(const loader::Model& model, const loader::Op& op, size_t operand,
                     const OutputPart& part);

/// The geometry of the part alone: out_h and out_c are the part's, in_h is what part_read(0) has of rows, in_c
/// the whole map's, top and bottom padding what of it the part still reaches. So any kernel computes the part
/// from pointers to its first input row and its first output element, if it is told how far apart the output's
/// pixels are.
cpu::ConvShape part_shape(const cpu::ConvShape& whole, const OutputPart& part);

}  // namespace phonebit::engine::analysis
