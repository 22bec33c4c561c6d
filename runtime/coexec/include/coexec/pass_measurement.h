// How long a whole network takes on both processors, and its layers inside it.
#pragma once

#include <functional>
#include <vector>

#include "loader/model.h"
#include "types/layer.h"
#include "types/tensor.h"

namespace phonebit::engine::coexec {

/// Runs one image. Where `parts` is not null the pass keeps time: it fills `cpu` and `gpu`, zeros before.
using Pass = std::function<void(const std::vector<InputBuffer>& inputs,
                                const std::vector<OutputBuffer>& outputs, PassTimes* parts)>;

/// Of passes over random content: the least total of `repeats` that keep no time, and the layers of the
/// quickest of as many that do. Those are of one pass, so that they add up. Throws what `pass` throws.
PassTimes measure_pass(const loader::Model& model, int repeats, const Pass& pass);

}  // namespace phonebit::engine::coexec
