// Inputs of networks that callers give as levels.
#pragma once

#include <memory>
#include <vector>

#include "cpu/executor.h"
#include "types/tensor.h"

namespace phonebit::engine::cpu {

/// Computes the values that levels stand for, image by image. One caller at a time.
class LevelInputs {
 public:
  /// `model` and `isa` must outlive this.
  LevelInputs(const loader::Model& model, const Isa& isa, std::shared_ptr<threads::ThreadPool> pool);
  ~LevelInputs();

  /// Before image() of these inputs. Allocates where an input gets levels for the first time.
  void prepare(const std::vector<InputBuffer>& inputs);
  /// Values of an image of a network input: the caller's own, or computed into memory that the next call for
  /// this input uses again. Throws Error(cancelled).
  const std::byte* image(const InputBuffer& buffer, size_t input, int image,
                         const Cancellation& cancellation);

 private:
  struct Input;

  const loader::Model& model_;
  const Isa& isa_;
  std::shared_ptr<threads::ThreadPool> pool_;
  std::vector<std::unique_ptr<Input>> inputs_;
};

}  // namespace phonebit::engine::cpu
