// What runs one image at a time.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backend/host_buffers.h"
#include "cpu/executor.h"
#include "cpu/level_inputs.h"
#include "types/tensor.h"

namespace phonebit::engine::cpu {

/// A network's layers, and where they find inputs and outputs of the present image.
struct Lane {
  /// As Executor's and LevelInputs'.
  Lane(const loader::Model& network, const Isa& isa, const Options& options,
       const std::shared_ptr<threads::ThreadPool>& pool, const PackedWeights* packed = nullptr)
      : model(network),
        executor(network, isa, options, pool, packed),
        levels(network, isa, pool),
        bound_inputs(network.inputs.size()),
        bound_outputs(network.outputs.size()) {}

  /// After levels.prepare(). Throws Error(cancelled).
  void bind(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out, int image,
            const Cancellation& cancellation) {
    for (size_t i = 0; i < in.size(); ++i) bound_inputs[i] = levels.image(in[i], i, image, cancellation);
    for (size_t i = 0; i < out.size(); ++i)
      bound_outputs[i] = image_of(out[i], model.tensor(model.outputs[i]).bytes(), image);
    executor.bind(bound_inputs.data(), bound_outputs.data());
  }

  const loader::Model& model;
  Executor executor;
  LevelInputs levels;
  std::vector<const std::byte*> bound_inputs;
  std::vector<std::byte*> bound_outputs;
  std::atomic<bool> is_taken{false};
};

}  // namespace phonebit::engine::cpu
