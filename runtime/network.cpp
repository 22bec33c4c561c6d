#include "phonebit/network.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include "buffer_checks.h"
#include "cpu/executor.h"
#include "fail.h"
#include "loader/loader.h"
#include "network_setup.h"

namespace phonebit {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

const std::byte* image_of(const InputBuffer& buffer, const TensorInfo& tensor, int image) {
  return static_cast<const std::byte*>(buffer.data) + static_cast<size_t>(image) * tensor.bytes();
}

std::byte* image_of(const OutputBuffer& buffer, const TensorInfo& tensor, int image) {
  return static_cast<std::byte*>(buffer.data) + static_cast<size_t>(image) * tensor.bytes();
}

}  // namespace

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

/// The model, what executes it, and descriptions for callers. Executor and layers refer to `model`, so this
/// never moves.
class Network::Implementation {
 public:
  const cpu::Isa& isa;
  const loader::Model model;
  cpu::Executor executor;
  std::vector<TensorInfo> tensors, inputs, outputs;
  std::vector<LayerInfo> layers;
  std::vector<std::vector<int>> layer_inputs, layer_outputs;

  Implementation(loader::Model&& checked, const cpu::Isa& chosen_isa, int threads, uint64_t max_memory_bytes)
      : isa(chosen_isa), model(std::move(checked)), executor(model, isa, threads, max_memory_bytes) {
    for (const loader::Tensor& tensor : model.tensors) tensors.push_back(describe_tensor(tensor));
    for (const int tensor : model.inputs) inputs.push_back(tensors[static_cast<size_t>(tensor)]);
    for (const int tensor : model.outputs) outputs.push_back(tensors[static_cast<size_t>(tensor)]);
    for (size_t i = 0; i < model.ops.size(); ++i) {
      layers.push_back(describe_layer(model, model.ops[i]));
      layers.back().kernel = executor.layer(i).kernel();
      layer_inputs.push_back(tensors_read(model.ops[i]));
      layer_outputs.push_back(tensors_written(model.ops[i]));
    }
    all_tensors_.resize(tensors.size());
    std::iota(all_tensors_.begin(), all_tensors_.end(), 0);
    bound_inputs_.resize(inputs.size());
    bound_outputs_.resize(outputs.size());
  }

  void forward(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out, int batch) {
    check_buffers("output", out, tensors, model.outputs, batch);
    const std::lock_guard<std::mutex> turn(mutex_);
    check_inputs(in, batch);
    for (int image = 0; image < batch; ++image) {
      bind(in, out, image);
      executor.run_image();
    }
  }

  std::vector<double> profile(const std::vector<InputBuffer>& in, int batch, int repeats) {
    if (repeats < 1) fail(ErrorCode::input, "repeats: got %d, expected at least 1", repeats);
    const std::lock_guard<std::mutex> turn(mutex_);
    check_inputs(in, batch);
    const Owned own = own_terminals(batch);
    std::vector<std::vector<double>> times(layers.size());
    for (int repeat = -1; repeat < repeats; ++repeat) {  // -1: the warm-up
      for (std::vector<double>& of_layer : times) of_layer.push_back(0.0);
      for (int image = 0; image < batch; ++image) {
        bind(in, own.outputs, image);
        for (size_t i = 0; i < layers.size(); ++i) {
          const auto begin = std::chrono::steady_clock::now();
          executor.run_layer(i);
          times[i].back() += Milliseconds(std::chrono::steady_clock::now() - begin).count();
        }
      }
      if (repeat < 0) {
        for (std::vector<double>& of_layer : times) of_layer.clear();
      }
    }
    std::vector<double> result;
    for (std::vector<double>& of_layer : times) result.push_back(median(std::move(of_layer)));
    return result;
  }

  void activations(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out, int batch) {
    check_buffers("tensor", out, tensors, all_tensors_, batch);
    const std::lock_guard<std::mutex> turn(mutex_);
    check_inputs(in, batch);
    std::vector<OutputBuffer> terminals;
    for (const int tensor : model.outputs) terminals.push_back(out[static_cast<size_t>(tensor)]);
    for (int image = 0; image < batch; ++image) {
      bind(in, terminals, image);
      const auto copy_out = [&](int tensor) {
        const auto index = static_cast<size_t>(tensor);
        std::byte* const target = image_of(out[index], tensors[index], image);
        if (target != executor.address(tensor))
          std::memcpy(target, executor.address(tensor), tensors[index].bytes());
      };
      for (const int tensor : model.inputs) copy_out(tensor);
      for (size_t i = 0; i < layers.size(); ++i) {
        executor.run_layer(i);
        for (const int tensor : layer_outputs[i]) copy_out(tensor);
      }
    }
  }

  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch) {
    check_layer(index);
    check_buffers("operand", operands, tensors, layer_inputs[index], batch);
    check_buffers("result", results, tensors, layer_outputs[index], batch);
    const std::lock_guard<std::mutex> turn(mutex_);
    const Owned own = own_terminals(1);
    bind(own.inputs, own.outputs, 0);
    // All tensors of one op live at the same time, so each has memory of its own.
    for (int image = 0; image < batch; ++image) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const int tensor = layer_inputs[index][i];
        const TensorInfo& info = tensors[static_cast<size_t>(tensor)];
        std::memcpy(executor.address(tensor), image_of(operands[i], info, image), info.bytes());
      }
      executor.run_layer(index);
      for (size_t i = 0; i < results.size(); ++i) {
        const int tensor = layer_outputs[index][i];
        const TensorInfo& info = tensors[static_cast<size_t>(tensor)];
        std::memcpy(image_of(results[i], info, image), executor.address(tensor), info.bytes());
      }
    }
  }

  void check_layer(size_t index) const {
    if (index >= layers.size())
      fail(ErrorCode::input, "layer %zu does not exist, there are %zu", index, layers.size());
  }

 private:
  /// Memory of the engine's own in place of a caller's input and output buffers.
  struct Owned {
    std::vector<memory::AlignedBuffer> memory;
    std::vector<InputBuffer> inputs;
    std::vector<OutputBuffer> outputs;
  };

  Owned own_terminals(int batch) const {
    Owned own;
    const auto allocate = [&](const TensorInfo& tensor) {
      const size_t bytes = static_cast<size_t>(batch) * tensor.bytes();
      own.memory.emplace_back(bytes, "inputs and outputs");
      std::memset(own.memory.back().data(), 0, bytes);
      return bytes;
    };
    for (const TensorInfo& tensor : inputs) {
      const size_t bytes = allocate(tensor);
      own.inputs.push_back({own.memory.back().data(), bytes});
    }
    for (const TensorInfo& tensor : outputs) {
      const size_t bytes = allocate(tensor);
      own.outputs.push_back({own.memory.back().data(), bytes});
    }
    return own;
  }

  void check_inputs(const std::vector<InputBuffer>& in, int batch) {
    check_buffers("input", in, tensors, model.inputs, batch);
    for (size_t i = 0; i < in.size(); ++i) {
      if (inputs[i].dtype == ElementType::f32)
        check_no_nan(inputs[i], static_cast<const float*>(in[i].data), in[i].bytes / sizeof(float),
                     executor.pool());
    }
  }

  void bind(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out, int image) {
    for (size_t i = 0; i < in.size(); ++i) bound_inputs_[i] = image_of(in[i], inputs[i], image);
    for (size_t i = 0; i < out.size(); ++i) bound_outputs_[i] = image_of(out[i], outputs[i], image);
    executor.bind(bound_inputs_.data(), bound_outputs_.data());
  }

  std::mutex mutex_;  // held while the executor's memory is in use
  std::vector<int> all_tensors_;
  std::vector<const std::byte*> bound_inputs_;
  std::vector<std::byte*> bound_outputs_;
};

Network Network::load(const std::string& path, const Options& options) {
  const cpu::Isa& isa = choose_isa(options.isa);
  const int threads = choose_threads(options.threads);
  try {
    loader::Model model = loader::load_model(path);
    return Network(
        std::make_unique<Implementation>(std::move(model), isa, threads, options.max_memory_bytes));
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

void Network::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                      int batch) {
  implementation_->forward(inputs, outputs, batch);
}

std::vector<double> Network::profile(const std::vector<InputBuffer>& inputs, int batch, int repeats) {
  return implementation_->profile(inputs, batch, repeats);
}

void Network::activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                          int batch) {
  implementation_->activations(inputs, tensors, batch);
}

void Network::run_op(size_t index, const std::vector<InputBuffer>& operands,
                     const std::vector<OutputBuffer>& results, int batch) {
  implementation_->run_op(index, operands, results, batch);
}

const std::vector<int>& Network::layer_inputs(size_t index) const {
  implementation_->check_layer(index);
  return implementation_->layer_inputs[index];
}

const std::vector<int>& Network::layer_outputs(size_t index) const {
  implementation_->check_layer(index);
  return implementation_->layer_outputs[index];
}

MemoryInfo Network::memory() const {
  const cpu::Executor& executor = implementation_->executor;
  return {executor.storage().arena_bytes(), executor.storage().lower_bound_bytes(), executor.scratch_bytes(),
          executor.packed_bytes(), implementation_->model.file.size()};
}

const std::string& Network::metadata() const { return implementation_->model.metadata; }
const char* Network::isa() const { return implementation_->isa.name; }
int Network::threads() const { return implementation_->executor.pool().threads(); }

}  // namespace phonebit
