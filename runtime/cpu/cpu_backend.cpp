#include "cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "analysis/op_tensors.h"
#include "backend/host_buffers.h"
#include "cpu/i8_arithmetic.h"

namespace phonebit::engine::cpu {

CpuBackend::CpuBackend(const loader::Model& model, const Isa& isa, const Options& options,
                       std::shared_ptr<threads::ThreadPool> pool)
    : model_(model),
      isa_(isa),
      executor_(model, isa, options, pool),
      levels_(model, isa, std::move(pool)),
      precision_(options.precision),
      bound_inputs_(model.inputs.size()),
      bound_outputs_(model.outputs.size()) {}

void CpuBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                         int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  if (layer_ms != nullptr) std::fill(layer_ms->begin(), layer_ms->end(), 0.0);
  for (int image = 0; image < batch; ++image) {
    bind(inputs, outputs, image);
    executor_.run_image(cancellation, layer_ms);
  }
}

void CpuBackend::activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                             int batch, const Cancellation& cancellation) {
  std::vector<OutputBuffer> terminals;
  for (const int tensor : model_.outputs) terminals.push_back(tensors[static_cast<size_t>(tensor)]);
  for (int image = 0; image < batch; ++image) {
    bind(inputs, terminals, image);
    for (const int tensor : model_.inputs) copy_out(tensor, tensors[static_cast<size_t>(tensor)], image);
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      executor_.run_layer(i, cancellation);
      for (const int tensor : analysis::tensors_written(model_.ops[i]))
        copy_out(tensor, tensors[static_cast<size_t>(tensor)], image);
    }
  }
}

void CpuBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                        const std::vector<OutputBuffer>& results, int batch,
                        const Cancellation& cancellation) {
  const std::vector<int> read = analysis::tensors_read(model_.ops[index]);
  const std::vector<int> written = analysis::tensors_written(model_.ops[index]);
  const OwnTerminals own(model_, 1);
  bind(own.inputs, own.outputs, 0);
  // All tensors of one op live at the same time, so each has memory of its own.
  for (int image = 0; image < batch; ++image) {
    cancellation.check();
    for (size_t i = 0; i < operands.size(); ++i) copy_in(read[i], operands[i], image);
    executor_.run_layer(index, cancellation);
    for (size_t i = 0; i < results.size(); ++i) copy_out(written[i], results[i], image);
  }
}

std::vector<std::string> CpuBackend::warnings() const {
  if (precision_ != Precision::fast) return {};
  const std::string text = kept_exact_text(model_);
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}

MemoryInfo CpuBackend::memory() const {
  return {executor_.storage().arena_bytes(), executor_.storage().lower_bound_bytes(),
          executor_.scratch_bytes(), executor_.packed_bytes(), model_.file.size()};
}

void CpuBackend::bind(const std::vector<InputBuffer>& in, const std::vector<OutputBuffer>& out, int image) {
  for (size_t i = 0; i < in.size(); ++i) bound_inputs_[i] = levels_.image(in[i], i, image);
  for (size_t i = 0; i < out.size(); ++i)
    bound_outputs_[i] = image_of(out[i], model_.tensor(model_.outputs[i]).bytes(), image);
  executor_.bind(bound_inputs_.data(), bound_outputs_.data());
}

void CpuBackend::copy_in(int tensor, const InputBuffer& from, int image) {
  const size_t bytes = model_.tensor(tensor).bytes();
  std::memcpy(executor_.address(tensor), image_of(from, bytes, image), bytes);
}

void CpuBackend::copy_out(int tensor, const OutputBuffer& to, int image) {
  const size_t bytes = model_.tensor(tensor).bytes();
  std::byte* const target = image_of(to, bytes, image);
  if (target != executor_.address(tensor)) std::memcpy(target, executor_.address(tensor), bytes);
}

}  // namespace phonebit::engine::cpu
