// The limit on how long a file may make the engine compute.
#pragma once

#include "loader/model.h"

namespace phonebit::engine::analysis {

/// Operations of one image in an op: multiply-adds of values, xor-popcounts of 32-bit words, reads of up to
/// 16 channels by pooling windows, or elements written, whichever the op mostly does, and its steps.
double work(const loader::Model& model, const loader::Op& op);

/// A small file can ask for endless work, by windows as large as the map. Throws Error(format), naming the op
/// that takes most, where all ops together take more than `max_work` operations of one image.
void check_work(const loader::Model& model, double max_work);

}  // namespace phonebit::engine::analysis
