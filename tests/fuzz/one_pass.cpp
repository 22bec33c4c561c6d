#include "one_pass.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace phonebit::fuzz {
namespace {

/// Small numbers of both signs, whose sums are exact in any order.
std::vector<uint8_t> input_bytes(const phonebit_tensor_info& tensor) {
  std::vector<uint8_t> bytes(tensor.bytes);
  for (size_t i = 0; tensor.type == PHONEBIT_TYPE_U8 && i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(i * 37);
  for (size_t i = 0; tensor.type == PHONEBIT_TYPE_F32 && i < bytes.size() / sizeof(float); ++i) {
    const float value = static_cast<float>(static_cast<int>(i * 5 % 7) - 3);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

}  // namespace

void require(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s; last error: %s\n", claim, phonebit_last_error());
  std::abort();
}

void succeed(phonebit_status status, const char* call) { require(status == PHONEBIT_OK, call); }

OnePass::OnePass(phonebit_network* network) : network_(network) {
  int32_t count = 0;
  succeed(phonebit_network_input_count(network, &count), "input_count");
  for (int32_t i = 0; i < count; ++i) {
    auto tensor = PHONEBIT_INIT(phonebit_tensor_info);
    succeed(phonebit_network_input_get(network, i, &tensor), "input_get");
    input_memory_.push_back(input_bytes(tensor));
  }
  succeed(phonebit_network_output_count(network, &count), "output_count");
  for (int32_t i = 0; i < count; ++i) {
    auto tensor = PHONEBIT_INIT(phonebit_tensor_info);
    succeed(phonebit_network_output_get(network, i, &tensor), "output_get");
    result_memory_.emplace_back(tensor.bytes, uint8_t{0xA5});
    result_types_.push_back(tensor.type);
  }
  for (const auto& bytes : input_memory_) inputs.push_back({bytes.data(), bytes.size()});
  for (auto& bytes : result_memory_) results.push_back({bytes.data(), bytes.size()});
}

phonebit_status OnePass::run() {
  return phonebit_network_forward(network_, inputs.data(), static_cast<int32_t>(inputs.size()),
                                  results.data(), static_cast<int32_t>(results.size()), 1);
}

phonebit_status OnePass::start(phonebit_job** job) {
  return phonebit_network_forward_async(network_, inputs.data(), static_cast<int32_t>(inputs.size()),
                                        results.data(), static_cast<int32_t>(results.size()), 1, nullptr,
                                        nullptr, job);
}

Outputs OnePass::outputs() const {
  Outputs outputs = result_memory_;
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t at = 0; result_types_[i] == PHONEBIT_TYPE_F32 && at < outputs[i].size();
         at += sizeof(float)) {
      float value;
      std::memcpy(&value, outputs[i].data() + at, sizeof value);
      if (std::isnan(value)) std::memset(outputs[i].data() + at, 0xFF, sizeof value);
    }
  }
  return outputs;
}

}  // namespace phonebit::fuzz
