// What a network tells of its layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace phonebit::engine {

/// One layer: one op of the file.
struct LayerInfo {
  std::string name;                  ///< the training framework's name
  std::string kind;                  ///< "binary_conv2d", ...
  std::string kernel;                ///< what runs it on this machine
  int64_t macs;                      ///< multiply-accumulates of one image
  bool binary;                       ///< whether these are of -1/+1 by -1/+1
  int64_t weight_bytes;              ///< of all its constants in the file
  std::vector<std::string> inputs;   ///< tensors that it reads: operands, then those of its steps, in order
  std::vector<std::string> outputs;  ///< tensors that it writes
};

/// What a layer takes on two processors inside a network, in microseconds.
struct LayerTimes {
  double total;     ///< from one such layer to the next, waiting for each other and data transfer included
  double cpu, gpu;  ///< the parts alone; 0: no part
};

/// What a whole network takes on two processors, in microseconds of one image.
struct PassTimes {
  double total;                  ///< from the call to its results
  std::vector<double> cpu, gpu;  ///< of each layer the parts alone, in one pass; 0: no part
};

/// One kernel launch of a layer.
struct DispatchInfo {
  std::string kernel, choice;  ///< kernel file; the choice with its parameters
  size_t global[3], local[3];  ///< work-items
};

/// The OpenCL program of a launch.
struct KernelProgram {
  std::string kernel, text;  ///< kernel file; what the driver compiles
};

}  // namespace phonebit::engine
