#include "compiled_part.h"

#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

#include "tensor_order.h"
#include "types/fail.h"

namespace phonebit::engine::plugins {
namespace {

/// Memory for at least `bytes` bytes.
std::byte* room(memory::AlignedBuffer& buffer, size_t bytes) {
  if (buffer.size() < bytes) buffer = memory::AlignedBuffer(bytes, "a tensor in the file's order");
  return buffer.data();
}

/// A map (C, H, W) as a matrix: channels, and pixels of each.
int64_t channels_of(const TensorForm& form) { return form.sizes[0]; }
int64_t pixels_of(const TensorForm& form) { return form.elements() / form.sizes[0]; }
/// Whether its order differs from the file's in more than names.
bool is_moved(const TensorForm& form) {
  return form.is_channels_first && channels_of(form) > 1 && pixels_of(form) > 1;
}

void check_tensors(const char* what, const std::vector<TensorForm>& forms,
                   const std::vector<TensorInfo>& infos) {
  bool fits = forms.size() == infos.size();
  for (size_t i = 0; fits && i < forms.size(); ++i) {
    fits = forms[i].elements() == infos[i].elements();
    if (forms[i].is_channels_first) fits = fits && forms[i].sizes[0] == infos[i].channels;
  }
  if (!fits) fail_damaged("the %s that are named are not those of the file", what);
}

}  // namespace

int64_t TensorForm::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

PartForm PartForm::of_text(const std::string& text) {
  PartForm form;
  std::istringstream words(text);
  std::string word, order;
  bool is_valid = words >> word >> form.file_bytes && word == "bytes";
  while (is_valid && words >> word >> order) {
    TensorForm tensor;
    tensor.is_channels_first = order == "channels_first";
    is_valid = (word == "in" || word == "out") && (tensor.is_channels_first || order == "plain");
    for (int64_t size = 0, most = INT32_MAX; is_valid && words >> size; most /= size) {
      tensor.sizes.push_back(size);
      is_valid = size > 0 && size <= most;
      if (!is_valid) break;
    }
    words.clear();  // a word ends the sizes
    if (tensor.is_channels_first) is_valid = is_valid && tensor.sizes.size() == 3;
    (word == "in" ? form.inputs : form.outputs).push_back(std::move(tensor));
  }
  if (!is_valid || form.inputs.empty() || form.outputs.empty())
    fail_damaged("this does not name a file's tensors: '%.200s'", text.c_str());
  return form;
}

CompiledPart::CompiledPart(const char* file, PartForm form, int threads)
    : form_(std::move(form)), threads_(threads), file_(form_.file_bytes, "a part's file") {
  std::memcpy(file_.data(), file, form_.file_bytes);
  idle_.push_back(loaded());
  const Network& network = idle_.back()->network;
  check_fits(network);
  for (const TensorInfo& input : network.inputs()) takes_bytes_.push_back(input.dtype == ElementType::u8);
}

std::unique_ptr<CompiledPart::Runner> CompiledPart::loaded() const {
  Options options;
  options.in_place = true;
  options.threads = threads_;
  return std::make_unique<Runner>(Runner{Network::load_memory(file_.data(), file_.size(), options),
                                         std::vector<memory::AlignedBuffer>(form_.inputs.size()),
                                         std::vector<memory::AlignedBuffer>(form_.outputs.size()),
                                         {}});
}

void CompiledPart::check_fits(const Network& network) const {
  check_tensors("inputs", form_.inputs, network.inputs());
  check_tensors("outputs", form_.outputs, network.outputs());
}

std::unique_ptr<CompiledPart::Runner> CompiledPart::taken() {
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (!idle_.empty()) {
      std::unique_ptr<Runner> runner = std::move(idle_.back());
      idle_.pop_back();
      return runner;
    }
  }
  return loaded();
}

void CompiledPart::give(std::unique_ptr<Runner> runner) {
  const std::lock_guard<std::mutex> lock(lock_);
  idle_.push_back(std::move(runner));
}

void CompiledPart::run(const std::vector<const void*>& inputs, const std::vector<float*>& outputs,
                       int batch) {
  std::unique_ptr<Runner> runner = taken();
  try {
    runner->forward(form_, inputs, outputs, batch);
  } catch (...) {
    give(std::move(runner));
    throw;
  }
  give(std::move(runner));
}

InputBuffer CompiledPart::Runner::input(size_t index, const TensorForm& form, const void* data, int batch) {
  const TensorInfo& info = network.inputs()[index];
  const size_t bytes = static_cast<size_t>(batch) * info.bytes();
  if (!is_moved(form)) return {data, bytes};
  std::byte* copy = room(inputs[index], bytes);
  const int64_t rows = channels_of(form), columns = pixels_of(form);
  if (info.dtype == ElementType::u8)
    transpose(static_cast<const uint8_t*>(data), reinterpret_cast<uint8_t*>(copy), batch, rows, columns);
  else
    transpose(static_cast<const float*>(data), reinterpret_cast<float*>(copy), batch, rows, columns);
  return {copy, bytes};
}

OutputBuffer CompiledPart::Runner::output(size_t index, const TensorForm& form, float* data, int batch) {
  const TensorInfo& info = network.outputs()[index];
  const size_t bytes = static_cast<size_t>(batch) * info.bytes();
  const bool is_direct = data != nullptr && info.dtype == ElementType::f32 && !is_moved(form);
  return {is_direct ? static_cast<void*>(data) : room(outputs[index], bytes), bytes};
}

void CompiledPart::Runner::write(size_t index, const TensorForm& form, float* data, int batch) {
  const TensorInfo& info = network.outputs()[index];
  const auto* values = outputs[index].as<const float>();
  if (info.dtype == ElementType::bit) {
    const size_t count = static_cast<size_t>(batch) * static_cast<size_t>(info.elements());
    float* unpacked = is_moved(form) ? reinterpret_cast<float*>(room(bits, count * sizeof(float))) : data;
    unpack_bits(outputs[index].as<const uint32_t>(), unpacked, int64_t{batch} * info.height * info.width,
                info.channels);
    values = unpacked;
  }
  if (is_moved(form)) transpose(values, data, batch, pixels_of(form), channels_of(form));
}

void CompiledPart::Runner::forward(const PartForm& form, const std::vector<const void*>& from,
                                   const std::vector<float*>& to, int batch) {
  std::vector<InputBuffer> in;
  std::vector<OutputBuffer> out;
  for (size_t i = 0; i < from.size(); ++i) in.push_back(input(i, form.inputs[i], from[i], batch));
  for (size_t i = 0; i < to.size(); ++i) out.push_back(output(i, form.outputs[i], to[i], batch));
  network.forward(in, out, batch);
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] != nullptr && out[i].data != to[i]) write(i, form.outputs[i], to[i], batch);
}

}  // namespace phonebit::engine::plugins
