#include "network.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include "backend.h"
#include "buffer_checks.h"
#include "coexec/coexec_backend.h"
#include "fail.h"
#include "loader/loader.h"
#include "lowering/op_tensors.h"
#include "network_setup.h"
#include "opencl/opencl_backend.h"

namespace phonebit {

size_t TensorInfo::bytes() const {
  const auto pixels = static_cast<size_t>(height) * static_cast<size_t>(width);
  switch (dtype) {
    case ElementType::bit:
      return pixels * static_cast<size_t>((channels + 31) / 32) * sizeof(uint32_t);
    case ElementType::u8:
      return pixels * static_cast<size_t>(channels);
    case ElementType::f32:
      break;
  }
  return pixels * static_cast<size_t>(channels) * sizeof(float);
}

float Preprocessing::scale(int channel) const {
  return static_cast<float>((high - low) / 255.0 / deviation[std::clamp(channel, 0, 3)]);
}

float Preprocessing::offset(int channel) const {
  const int entry = std::clamp(channel, 0, 3);
  return static_cast<float>((low - mean[entry]) / deviation[entry]);
}

/// The model, what executes it, and descriptions for callers. The backend refers to `model`, so this never
/// moves.
class Network::Implementation {
 public:
  const loader::Model model;
  std::unique_ptr<Backend> backend;
  std::vector<TensorInfo> tensors, inputs, outputs;
  std::vector<LayerInfo> layers;
  std::vector<Preprocessing> preprocessing;
  std::vector<DetectionHead> detection;
  std::vector<std::vector<int>> layer_inputs, layer_outputs;
  std::vector<int> all_tensors;
  std::mutex turn;  // held while the backend works

  Implementation(loader::Model&& checked, const Options& options) : model(std::move(checked)) {
    backend = make_backend(model, options);
    for (const loader::Tensor& tensor : model.tensors) tensors.push_back(describe_tensor(tensor));
    for (const int tensor : model.inputs) inputs.push_back(tensors[static_cast<size_t>(tensor)]);
    for (const int tensor : model.outputs) outputs.push_back(tensors[static_cast<size_t>(tensor)]);
    for (size_t i = 0; i < model.ops.size(); ++i) {
      layers.push_back(describe_layer(model, model.ops[i]));
      layers.back().kernel = backend->kernel(i);
      layer_inputs.push_back(lowering::tensors_read(model.ops[i]));
      layer_outputs.push_back(lowering::tensors_written(model.ops[i]));
    }
    for (const format::PreprocessingRecord& record : model.preprocessing)
      preprocessing.push_back(describe_preprocessing(record));
    for (const format::DetectionRecord& record : model.detection)
      detection.push_back(describe_detection(record));
    all_tensors.resize(tensors.size());
    std::iota(all_tensors.begin(), all_tensors.end(), 0);
  }

  /// The caller holds `turn`.
  void check_inputs(const std::vector<InputBuffer>& in, int batch) {
    check_buffers("input", in, tensors, model.inputs, batch);
    for (size_t i = 0; i < in.size(); ++i) {
      if (inputs[i].dtype == ElementType::f32)
        check_no_nan(inputs[i], static_cast<const float*>(in[i].data), in[i].bytes / sizeof(float),
                     backend->pool());
    }
  }

  void check_layer(size_t index) const {
    if (index >= layers.size())
      fail(ErrorCode::input, "layer %zu does not exist, there are %zu", index, layers.size());
  }

  opencl::OpenClBackend& opencl() const {
    auto* const result = dynamic_cast<opencl::OpenClBackend*>(backend.get());
    if (result == nullptr)
      fail(ErrorCode::input, "device %s: this needs a network on an OpenCL device",
           backend->device().c_str());
    return *result;
  }
  coexec::CoexecBackend& coexec() const {
    auto* const result = dynamic_cast<coexec::CoexecBackend*>(backend.get());
    if (result == nullptr)
      fail(ErrorCode::input, "device %s: this needs a network on 'gpu+cpu'", backend->device().c_str());
    return *result;
  }
  const coexec::CoexecBackend* coexec_or_null() const {
    return dynamic_cast<const coexec::CoexecBackend*>(backend.get());
  }
  const opencl::OpenClBackend* opencl_or_null() const {
    return dynamic_cast<const opencl::OpenClBackend*>(backend.get());
  }
};

Network Network::load(const std::string& path, const Options& options) {
  try {
    return Network(std::make_unique<Implementation>(loader::load_model(path), options));
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::device, "%s: not enough memory to load the model", path.c_str());
  }
}

Network::Network(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const std::vector<TensorInfo>& Network::inputs() const { return implementation_->inputs; }
const std::vector<TensorInfo>& Network::outputs() const { return implementation_->outputs; }
const std::vector<TensorInfo>& Network::tensors() const { return implementation_->tensors; }
const std::vector<LayerInfo>& Network::layers() const { return implementation_->layers; }
const std::vector<Preprocessing>& Network::preprocessing() const { return implementation_->preprocessing; }
const std::vector<DetectionHead>& Network::detection() const { return implementation_->detection; }
const std::vector<std::string>& Network::labels() const { return implementation_->model.labels; }

void Network::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                      int batch) {
  Implementation& own = *implementation_;
  check_buffers("output", outputs, own.tensors, own.model.outputs, batch);
  const std::lock_guard<std::mutex> turn(own.turn);
  own.check_inputs(inputs, batch);
  own.backend->forward(inputs, outputs, batch);
}

std::vector<double> Network::profile(const std::vector<InputBuffer>& inputs, int batch, int repeats) {
  if (repeats < 1) fail(ErrorCode::input, "repeats: got %d, expected at least 1", repeats);
  const std::lock_guard<std::mutex> turn(implementation_->turn);
  implementation_->check_inputs(inputs, batch);
  return implementation_->backend->profile(inputs, batch, repeats);
}

void Network::activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                          int batch) {
  Implementation& own = *implementation_;
  check_buffers("tensor", tensors, own.tensors, own.all_tensors, batch);
  const std::lock_guard<std::mutex> turn(own.turn);
  own.check_inputs(inputs, batch);
  own.backend->activations(inputs, tensors, batch);
}

void Network::run_op(size_t index, const std::vector<InputBuffer>& operands,
                     const std::vector<OutputBuffer>& results, int batch) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  check_buffers("operand", operands, own.tensors, own.layer_inputs[index], batch);
  check_buffers("result", results, own.tensors, own.layer_outputs[index], batch);
  const std::lock_guard<std::mutex> turn(own.turn);
  own.backend->run_op(index, operands, results, batch);
}

void Network::forward_on_device(const std::vector<DeviceBuffer>& inputs,
                                const std::vector<DeviceBuffer>& outputs, int batch) {
  Implementation& own = *implementation_;
  const std::lock_guard<std::mutex> turn(own.turn);
  own.opencl().forward_on_device(inputs, outputs, batch);
}

std::vector<std::string> Network::candidates(size_t index) const {
  implementation_->check_layer(index);
  const opencl::OpenClBackend* const backend = implementation_->opencl_or_null();
  return backend != nullptr ? backend->candidates(index) : std::vector<std::string>{};
}

double Network::measure_choice(size_t index, const std::string& choice, int batch, int repeats,
                               bool* is_equal) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  if (batch < 1 || repeats < 1)
    fail(ErrorCode::input, "batch %d, repeats %d: expected at least 1", batch, repeats);
  const std::lock_guard<std::mutex> turn(own.turn);
  return own.opencl().measure_choice(index, choice, batch, repeats, is_equal);
}

std::string Network::tuning_line(size_t index, const std::string& choice) const {
  implementation_->check_layer(index);
  return implementation_->opencl().tuning_line(index, choice);
}

LayerTimes Network::measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                  const std::optional<OutputPart>& gpu, int repeats) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  if (repeats < 1) fail(ErrorCode::input, "repeats: got %d, expected at least 1", repeats);
  const std::lock_guard<std::mutex> turn(own.turn);
  return own.coexec().measure_layer(index, cpu, gpu, repeats);
}

std::vector<DispatchInfo> Network::dispatch(size_t index, const OutputPart& gpu) {
  Implementation& own = *implementation_;
  own.check_layer(index);
  const std::lock_guard<std::mutex> turn(own.turn);
  return own.coexec().dispatch(index, gpu);
}

std::string Network::plan_key() const {
  const coexec::CoexecBackend* const backend = implementation_->coexec_or_null();
  return backend != nullptr ? backend->plan_key() : "";
}

ExecutionPlan Network::plan() const {
  const coexec::CoexecBackend* const backend = implementation_->coexec_or_null();
  return backend != nullptr ? backend->plan() : ExecutionPlan{};
}

CoexecInfo Network::coexec() const { return implementation_->coexec().info(); }

std::string Network::device() const { return implementation_->backend->device(); }
std::vector<std::string> Network::warnings() const { return implementation_->backend->warnings(); }

StartupInfo Network::startup() const {
  const opencl::OpenClBackend* const backend = implementation_->opencl_or_null();
  return backend != nullptr ? backend->startup() : StartupInfo{};
}

OpenClHandles Network::opencl() const {
  const opencl::OpenClBackend* const backend = implementation_->opencl_or_null();
  return backend != nullptr ? backend->handles() : OpenClHandles{};
}

const std::vector<int>& Network::layer_inputs(size_t index) const {
  implementation_->check_layer(index);
  return implementation_->layer_inputs[index];
}

const std::vector<int>& Network::layer_outputs(size_t index) const {
  implementation_->check_layer(index);
  return implementation_->layer_outputs[index];
}

MemoryInfo Network::memory() const { return implementation_->backend->memory(); }
const std::string& Network::metadata() const { return implementation_->model.metadata; }
const char* Network::isa() const { return implementation_->backend->isa(); }
int Network::threads() const { return implementation_->backend->pool().threads(); }

}  // namespace phonebit
