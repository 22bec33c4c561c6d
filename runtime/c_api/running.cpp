// Inferences that the caller waits for, and how long their layers take.
#include <algorithm>
#include <vector>

#include "arguments.h"
#include "buffers.h"
#include "handles.h"
#include "status.h"

using namespace phonebit::engine::c_api;

namespace {

/// Lists of buffers that a thread uses again, so that an inference allocates nothing.
struct BufferLists {
  std::vector<phonebit::engine::InputBuffer> inputs;
  std::vector<phonebit::engine::OutputBuffer> outputs;
};

BufferLists& buffer_lists() {
  static thread_local BufferLists lists;
  return lists;
}

/// Room for one time per layer.
double* checked_times(const phonebit::engine::Network& network, double* milliseconds, int32_t count) {
  const size_t layers = network.layers().size();
  if (checked_count(milliseconds, count, "milliseconds") != layers)
    phonebit::engine::fail(phonebit::engine::ErrorCode::input,
                           "milliseconds: got room for %d layers, expected %zu", count, layers);
  return milliseconds;
}

}  // namespace

phonebit_status phonebit_network_forward(phonebit_network* network, const phonebit_input* inputs,
                                         int32_t input_count, const phonebit_output* outputs,
                                         int32_t output_count, int32_t batch) {
  return guarded([&] {
    phonebit::engine::Network& own = given(network, "network").network;
    BufferLists& lists = buffer_lists();
    copy_inputs(own, inputs, input_count, lists.inputs);
    copy_outputs(own, outputs, output_count, lists.outputs);
    own.forward(lists.inputs, lists.outputs, batch);
  });
}

phonebit_status phonebit_network_profile(phonebit_network* network, const phonebit_input* inputs,
                                         int32_t input_count, int32_t batch, int32_t repeats,
                                         double* milliseconds, int32_t count) {
  return guarded([&] {
    phonebit::engine::Network& own = given(network, "network").network;
    double* const times = checked_times(own, milliseconds, count);
    BufferLists& lists = buffer_lists();
    copy_inputs(own, inputs, input_count, lists.inputs);
    const std::vector<double> measured = own.profile(lists.inputs, batch, repeats);
    std::copy(measured.begin(), measured.end(), times);
  });
}

phonebit_status phonebit_network_last_profile(phonebit_network* network, double* milliseconds,
                                              int32_t count) {
  return guarded([&] {
    phonebit::engine::Network& own = given(network, "network").network;
    double* const times = checked_times(own, milliseconds, count);
    const std::vector<double> measured = own.last_profile();
    std::copy(measured.begin(), measured.end(), times);
  });
}
