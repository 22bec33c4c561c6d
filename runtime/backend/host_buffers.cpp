#include "backend/host_buffers.h"

#include <cstring>

namespace phonebit::engine {

OwnTerminals::OwnTerminals(const loader::Model& model, int batch) {
  const auto allocate = [&](int tensor) {
    const size_t bytes = static_cast<size_t>(batch) * model.tensor(tensor).bytes();
    memory.emplace_back(bytes, "inputs and outputs");
    std::memset(memory.back().data(), 0, bytes);
    return bytes;
  };
  for (const int tensor : model.inputs) {
    const size_t bytes = allocate(tensor);
    inputs.push_back({memory.back().data(), bytes});
  }
  for (const int tensor : model.outputs) {
    const size_t bytes = allocate(tensor);
    outputs.push_back({memory.back().data(), bytes});
  }
}

}  // namespace phonebit::engine
