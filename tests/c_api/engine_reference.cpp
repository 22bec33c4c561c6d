#include "engine_reference.h"

#include <cstring>
#include <filesystem>
#include <random>

#include "engine/network.h"

namespace reference {

using phonebit::engine::ElementType;
using phonebit::engine::Network;

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pbit") paths.push_back(entry.path());
  return paths;
}

std::vector<Bytes> inputs_of(const std::string& path, int batch) {
  std::mt19937 random(7);
  std::vector<Bytes> inputs;
  const Network network = Network::load(path);
  for (const phonebit::engine::TensorInfo& tensor : network.inputs()) {
    Bytes bytes(tensor.bytes() * static_cast<size_t>(batch));
    for (size_t at = 0; at < bytes.size(); at += tensor.dtype == ElementType::f32 ? 4 : 1) {
      const float value = static_cast<float>(static_cast<int>(random() % 65) - 32) / 8;
      if (tensor.dtype == ElementType::f32)
        std::memcpy(bytes.data() + at, &value, sizeof value);
      else
        bytes[at] = static_cast<uint8_t>(random() & 255);
    }
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

std::vector<Bytes> outputs_of(const std::string& path, const std::string& device,
                              const std::vector<Bytes>& inputs, int batch) {
  phonebit::engine::Options options;
  options.device = device;
  Network network = Network::load(path, options);
  std::vector<phonebit::engine::InputBuffer> in;
  for (const Bytes& bytes : inputs) in.push_back({bytes.data(), bytes.size()});
  std::vector<Bytes> outputs;
  for (const phonebit::engine::TensorInfo& tensor : network.outputs())
    outputs.emplace_back(tensor.bytes() * static_cast<size_t>(batch));
  std::vector<phonebit::engine::OutputBuffer> out;
  for (Bytes& bytes : outputs) out.push_back({bytes.data(), bytes.size()});
  network.forward(in, out, batch);
  return outputs;
}

}  // namespace reference
