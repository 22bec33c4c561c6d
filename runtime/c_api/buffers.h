// Buffers of the C interface as the engine takes them.
#pragma once

#include <vector>

#include "arguments.h"
#include "engine/network.h"

namespace phonebit::c_api {

inline void copy_inputs(const phonebit_input* inputs, int32_t count, std::vector<InputBuffer>& copy) {
  const size_t checked = checked_count(inputs, count, "inputs");
  copy.clear();
  for (size_t i = 0; i < checked; ++i) copy.push_back({inputs[i].data, inputs[i].bytes});
}

inline void copy_outputs(const phonebit_output* outputs, int32_t count, std::vector<OutputBuffer>& copy) {
  const size_t checked = checked_count(outputs, count, "outputs");
  copy.clear();
  for (size_t i = 0; i < checked; ++i) copy.push_back({outputs[i].data, outputs[i].bytes});
}

}  // namespace phonebit::c_api
