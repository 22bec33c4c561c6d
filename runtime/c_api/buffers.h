// Buffers of the C interface as the engine takes them.
#pragma once

#include <vector>

#include "arguments.h"
#include "engine/network.h"

namespace phonebit::engine::c_api {

/// Copies the caller's list, which is not read unless it has the `expected` length.
template <class Given, class Buffer>
void copy_buffers(const Given* list, int32_t count, size_t expected, const char* name,
                  std::vector<Buffer>& copy) {
  const size_t checked = checked_count(list, count, name);
  if (checked != expected)
    fail(ErrorCode::input, "%s: got %zu buffers, expected %zu", name, checked, expected);
  copy.clear();
  for (size_t i = 0; i < checked; ++i) copy.push_back({list[i].data, list[i].bytes});
}

inline void copy_inputs(const Network& network, const phonebit_input* inputs, int32_t count,
                        std::vector<InputBuffer>& copy) {
  copy_buffers(inputs, count, network.inputs().size(), "inputs", copy);
  for (size_t i = 0; i < copy.size(); ++i) copy[i].is_levels = network.takes_levels(i);
}

inline void copy_outputs(const Network& network, const phonebit_output* outputs, int32_t count,
                         std::vector<OutputBuffer>& copy) {
  copy_buffers(outputs, count, network.outputs().size(), "outputs", copy);
}

}  // namespace phonebit::engine::c_api
