// Between NumPy arrays and the runtime's buffers.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <vector>

#include "engine/network.h"

namespace phonebit::engine::python {

/// Images read from Python. Keeps its arrays alive, so that buffers stay valid without the interpreter lock.
class InputArrays {
 public:
  /// Checks that there is one array for each tensor, each NHWC of that tensor's shape and type (bit: int8 of
  /// -1 and +1), C-contiguous, all with the same batch of at least 1. Throws Error(input) naming `role` and
  /// tensor, got and expected. `which` indexes `tensors`. With `takes_levels`, uint8 will do for float32.
  InputArrays(const char* role, const pybind11::sequence& arrays, const std::vector<TensorInfo>& tensors,
              const std::vector<int>& which, bool takes_levels = false);

  int batch() const { return batch_; }
  const std::vector<InputBuffer>& buffers() const { return buffers_; }

 private:
  void take(const char* role, const pybind11::handle& object, const TensorInfo& tensor, bool takes_levels);

  std::vector<pybind11::array> arrays_;
  std::vector<std::vector<uint32_t>> packed_;
  std::vector<InputBuffer> buffers_;
  int batch_ = 0;
};

/// New arrays for results; bit tensors are collected as packed words and unpacked by finish().
class OutputArrays {
 public:
  OutputArrays(const std::vector<TensorInfo>& tensors, const std::vector<int>& which, int batch);

  const std::vector<OutputBuffer>& buffers() const { return buffers_; }
  /// Unpacks bits to int8; needs no interpreter lock.
  void unpack();
  const std::vector<pybind11::array>& arrays() const { return arrays_; }

 private:
  /// A bit tensor on its way to int8.
  struct Packed {
    std::vector<uint32_t> words;
    int8_t* values;
    size_t pixels;
    int channels;
  };

  std::vector<pybind11::array> arrays_;
  std::vector<Packed> packed_;
  std::vector<OutputBuffer> buffers_;
};

}  // namespace phonebit::engine::python
