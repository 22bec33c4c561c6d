#include "opencl/opencl_backend.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "analysis/op_tensors.h"
#include "backend/host_buffers.h"
#include "opencl/cl_functions.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {

using loader::Model;
using loader::Op;

std::vector<std::pair<std::string, std::string>> table_choices(const Device& device) {
  const TuningTable table = TuningTable::parse(built_in_tuning_table(), "tuning.table");
  std::vector<std::pair<std::string, std::string>> result;
  for (const TuningEntry& entry : table.entries()) {
    const auto is_known = [&](const auto& known) { return known.first == entry.op + " " + entry.shape; };
    const bool is_exact_shape = std::isdigit(static_cast<unsigned char>(entry.shape[0])) != 0;
    if (is_exact_shape || std::any_of(result.begin(), result.end(), is_known)) continue;
    const std::vector<KernelChoice> choices = table.choices({entry.op, entry.shape, ""}, device);
    if (!choices.empty()) result.emplace_back(entry.op + " " + entry.shape, choices[0].text());
  }
  return result;
}

OpenClBackend::OpenClBackend(const Model& model, std::shared_ptr<Context> context, std::string label,
                             std::vector<int> cores, const Options& options)
    : model_(model),
      context_(std::move(context)),
      label_(std::move(label)),
      programs_(context_, cache_directory(options.cache_directory)),
      executor_(model, context_, programs_, options),
      pool_(1, std::move(cores)),
      can_replay_(options.command_buffer) {
  for (size_t i = 0; i < model.ops.size(); ++i) executor_.prepare_layer(i);
  executor_.prepare(1);
}

template <class Body>
void OpenClBackend::in_passes(int batch, const Cancellation& cancellation, const Body& body) {
  const int most = executor_.largest_batch();
  for (int first = 0; first < batch; first += most) {
    cancellation.check();
    const int images = std::min(most, batch - first);
    executor_.prepare(images);
    guarded([&] { body(first, images); });
  }
}

template <class Body>
void OpenClBackend::guarded(const Body& body) {
  try {
    body();
  } catch (...) {
    api().clFinish(context_->queue());
    throw;
  }
}

void OpenClBackend::upload_inputs(const std::vector<InputBuffer>& inputs, int first, int images) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int tensor = model_.inputs[i];
    executor_.write(tensor, image_of(inputs[i], model_.tensor(tensor).bytes(), first), images, false);
  }
}

void OpenClBackend::forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
                            int batch, const Cancellation& cancellation, std::vector<double>* layer_ms) {
  if (layer_ms != nullptr) std::fill(layer_ms->begin(), layer_ms->end(), 0.0);
  in_passes(batch, cancellation, [&](int first, int images) {
    upload_inputs(inputs, first, images);
    if (layer_ms != nullptr) {
      const std::vector<double> times = executor_.run_timed(cancellation);
      for (size_t i = 0; i < times.size(); ++i) (*layer_ms)[i] += times[i];
    } else {
      executor_.enqueue(can_replay_, &cancellation);
    }
    // The queue is in order, so waiting for the last copy is waiting for everything.
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int tensor = model_.outputs[i];
      executor_.read(tensor, image_of(outputs[i], model_.tensor(tensor).bytes(), first), images,
                     i + 1 == outputs.size());
    }
  });
}

void OpenClBackend::activations(const std::vector<InputBuffer>& inputs,
                                const std::vector<OutputBuffer>& tensors, int batch,
                                const Cancellation& cancellation) {
  in_passes(batch, cancellation, [&](int first, int images) {
    const auto copy_out = [&](int tensor) {
      const OutputBuffer& target = tensors[static_cast<size_t>(tensor)];
      executor_.read(tensor, image_of(target, model_.tensor(tensor).bytes(), first), images, true);
    };
    upload_inputs(inputs, first, images);
    for (const int tensor : model_.inputs) copy_out(tensor);
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      executor_.run_layer(i, cancellation);
      for (const int tensor : analysis::tensors_written(model_.ops[i])) copy_out(tensor);
    }
  });
}

void OpenClBackend::run_op(size_t index, const std::vector<InputBuffer>& operands,
                           const std::vector<OutputBuffer>& results, int batch,
                           const Cancellation& cancellation) {
  const std::vector<int> read = analysis::tensors_read(model_.ops[index]);
  const std::vector<int> written = analysis::tensors_written(model_.ops[index]);
  in_passes(batch, cancellation, [&](int first, int images) {
    for (size_t i = 0; i < operands.size(); ++i)
      executor_.write(read[i], image_of(operands[i], model_.tensor(read[i]).bytes(), first), images, true);
    executor_.run_layer(index, cancellation);
    for (size_t i = 0; i < results.size(); ++i)
      executor_.read(written[i], image_of(results[i], model_.tensor(written[i]).bytes(), first), images,
                     true);
  });
}

MemoryInfo OpenClBackend::memory() const {
  return {executor_.storage().arena_bytes(1), executor_.storage().lower_bound_bytes(),
          executor_.layers().scratch_bytes(), executor_.layers().weight_bytes(), model_.file.size()};
}

StartupInfo OpenClBackend::startup() const {
  const ProgramStatistics programs = programs_.statistics();
  StartupInfo info;
  info.programs_built = programs.built;
  info.programs_loaded = programs.loaded;
  info.cache_entries_rejected = programs.rejected;
  info.self_tests_run = executor_.layers().self_tests_run();
  info.build_ms = programs.build_ms;
  info.uses_command_buffer = executor_.uses_command_buffer();
  return info;
}

OpenClHandles OpenClBackend::handles() const {
  return {context_->get(), context_->device().id, context_->queue()};
}

}  // namespace phonebit::engine::opencl
