// A delegate that LiteRT loads (load_delegate): one .pbit file computes the whole model, whose operators LiteRT need
// not know. phonebit.litert makes the file and the options:
//
//   file     path of the .pbit file, which is read at once
//   form     its tensors, as PartForm has them
//   tensors  the model's indices of them: inputs, then outputs
//   threads  0: one for each processor
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "compiled_part.h"
#include "tflite_api.h"
#include "types/fail.h"

namespace phonebit::engine::plugins {
namespace {

struct DelegateOptions {
  std::string file, form, tensors, threads = "0";
};

class Delegate : public TfLiteDelegate {
 public:
  explicit Delegate(const DelegateOptions& options) : TfLiteDelegate{}, part_(part_of(options)) {
    Prepare = [](TfLiteContext* context, TfLiteDelegate* self) { return replace_all(context, self); };
    flags = kTfLiteDelegateFlagsAllowDynamicTensors;
    std::istringstream words(options.tensors);
    for (int place = 0; words >> place;)
      (inputs_.size() < form().inputs.size() ? inputs_ : outputs_).push_back(place);
    if (outputs_.size() != form().outputs.size())
      fail(ErrorCode::input, "option tensors: got '%.200s', expected indices of %zu inputs and %zu outputs",
           options.tensors.c_str(), form().inputs.size(), form().outputs.size());
  }

 private:
  static CompiledPart part_of(const DelegateOptions& options) {
    std::ifstream stream(options.file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(stream), {}};
    PartForm form = PartForm::of_text(options.form);
    if (content.size() != form.file_bytes)
      fail(ErrorCode::input, "option file: '%s' has %zu bytes, expected %zu", options.file.c_str(),
           content.size(), form.file_bytes);
    char* end = nullptr;
    const long threads = std::strtol(options.threads.c_str(), &end, 10);
    if (options.threads.empty() || *end != '\0' || threads < 0 || threads > INT32_MAX)
      fail(ErrorCode::input, "option threads: got '%s', expected 0 (all processors) or a number of threads",
           options.threads.c_str());
    return CompiledPart(content.data(), std::move(form), static_cast<int>(threads));
  }

  const PartForm& form() const { return part_.form(); }

  static TfLiteStatus replace_all(TfLiteContext* context, TfLiteDelegate* self) {
    TfLiteIntArray* plan = nullptr;
    if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
    TfLiteRegistration kernel{};
    kernel.init = [](TfLiteContext*, const char* params, size_t) -> void* {
      return reinterpret_cast<const TfLiteDelegateParams*>(params)->delegate;
    };
    kernel.free = [](TfLiteContext*, void*) {};
    kernel.prepare = [](TfLiteContext* to, TfLiteNode* node) {
      return reported(to, [&] { static_cast<Delegate*>(node->user_data)->prepare(to); });
    };
    kernel.invoke = [](TfLiteContext* to, TfLiteNode* node) {
      return reported(to, [&] { static_cast<Delegate*>(node->user_data)->invoke(to); });
    };
    kernel.custom_name = "PhoneBit";
    kernel.version = 1;
    return context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, plan, self);
  }

  template <class Action>
  static TfLiteStatus reported(TfLiteContext* context, const Action& action) {
    try {
      action();
      return kTfLiteOk;
    } catch (const std::exception& error) {
      context->ReportError(context, "PhoneBit: %s", error.what());
      return kTfLiteError;
    }
  }

  static TfLiteTensor& tensor(const TfLiteContext* context, int place) {
    if (place < 0 || static_cast<size_t>(place) >= context->tensors_size)
      fail(ErrorCode::input, "option tensors: the model has no tensor %d", place);
    return context->tensors[place];
  }

  /// The images in a batch of inputs.
  int batch_of(const TfLiteContext* context) const {
    int batch = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TfLiteTensor& given = tensor(context, inputs_[i]);
      const std::vector<int64_t> sizes(given.dims->data(), given.dims->data() + given.dims->size);
      const std::vector<int64_t>& expected = form().inputs[i].sizes;
      if (given.type != (part_.takes_bytes(i) ? kTfLiteUInt8 : kTfLiteFloat32))
        fail(ErrorCode::input, "input %zu: got another element type", i);
      if (sizes.size() != expected.size() + 1 ||
          !std::equal(expected.begin(), expected.end(), sizes.begin() + 1))
        fail(ErrorCode::input, "input %zu: got another shape than the model's; only its batch can be changed",
             i);
      if (i > 0 && sizes[0] != batch)
        fail(ErrorCode::input, "input %zu: the batch is %d, expected %d", i, static_cast<int>(sizes[0]),
             batch);
      batch = static_cast<int>(sizes[0]);
    }
    return batch;
  }

  void prepare(TfLiteContext* context) const {
    const int batch = batch_of(context);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::vector<int64_t>& expected = form().outputs[i].sizes;
      TfLiteTensor& result = tensor(context, outputs_[i]);
      if (result.type != kTfLiteFloat32) fail(ErrorCode::input, "output %zu: the model gives no floats", i);
      auto* sizes = static_cast<TfLiteIntArray*>(std::malloc((expected.size() + 2) * sizeof(int)));
      if (sizes == nullptr) throw std::bad_alloc();
      sizes->size = static_cast<int>(expected.size()) + 1;
      sizes->data()[0] = batch;
      for (size_t axis = 0; axis < expected.size(); ++axis)
        sizes->data()[axis + 1] = static_cast<int>(expected[axis]);
      if (context->ResizeTensor(context, &result, sizes) != kTfLiteOk)
        fail(ErrorCode::input, "output %zu: LiteRT cannot give it another shape", i);
    }
  }

  void invoke(TfLiteContext* context) {
    std::vector<const void*> inputs;
    std::vector<float*> outputs;
    for (const int place : inputs_) inputs.push_back(tensor(context, place).data);
    for (const int place : outputs_) outputs.push_back(static_cast<float*>(tensor(context, place).data));
    if (const int batch = batch_of(context); batch > 0) part_.run(inputs, outputs, batch);
  }

  CompiledPart part_;
  std::vector<int> inputs_, outputs_;
};

DelegateOptions options_of(char** keys, char** values, size_t count) {
  DelegateOptions options;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = keys[i];
    std::string* target = key == "file"      ? &options.file
                          : key == "form"    ? &options.form
                          : key == "tensors" ? &options.tensors
                          : key == "threads" ? &options.threads
                                             : nullptr;
    if (target == nullptr)
      fail(ErrorCode::input, "option '%s' is unknown; expected file, form, tensors or threads", key.c_str());
    *target = values[i];
  }
  return options;
}

}  // namespace
}  // namespace phonebit::engine::plugins

namespace ours = phonebit::engine::plugins;

extern "C" __attribute__((visibility("default"))) ours::TfLiteDelegate* tflite_plugin_create_delegate(
    char** keys, char** values, size_t count, void (*report)(const char*)) {
  try {
    return new ours::Delegate(ours::options_of(keys, values, count));
  } catch (const std::exception& error) {
    if (report != nullptr) report(error.what());
    return nullptr;
  }
}

extern "C" __attribute__((visibility("default"))) void tflite_plugin_destroy_delegate(
    ours::TfLiteDelegate* delegate) {
  delete static_cast<ours::Delegate*>(delegate);
}
