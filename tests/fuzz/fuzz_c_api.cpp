// Bytes as a program that calls the C interface: in any order, with NULL, absurd numbers, structures and
// buffers of any size. Each call succeeds or says what is wrong, and none is a defect or a crash.
#include <fuzzer/FuzzedDataProvider.h>
#include <phonebit/phonebit_layers_c.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "one_pass.h"

using phonebit::fuzz::require;

namespace {

using Bytes = std::vector<uint8_t>;

/// A small network of several kinds of layers, with rules for images and labels.
const Bytes& model() {
  static const Bytes content = [] {
    std::ifstream file(PHONEBIT_GOLDEN "/tiny_classifier.pbit", std::ios::binary);
    return Bytes{std::istreambuf_iterator<char>(file), {}};
  }();
  return content;
}

class Program {
 public:
  Program(const uint8_t* data, size_t size) : bytes_(data, size) {}

  void run() {
    for (int calls = 0; bytes_.remaining_bytes() > 0 && calls < 64; ++calls) call();
    for (phonebit_network*& network : networks_) phonebit_network_destroy(network);  // before what jobs use
    for (phonebit_job*& job : jobs_) {
      require(job == nullptr || phonebit_job_wait(job, 0) != PHONEBIT_PENDING, "no job outlives its network");
      phonebit_job_destroy(job);
    }
    for (phonebit_options*& options : options_) phonebit_options_destroy(options);
    for (phonebit_builder*& builder : builders_) phonebit_builder_destroy(builder);
  }

 private:
  void judge(phonebit_status status) {
    require(status >= PHONEBIT_OK && status <= PHONEBIT_PENDING && status != PHONEBIT_ERROR_INTERNAL,
            "a status that the header names, and no defect");
    require(status == PHONEBIT_OK || status == PHONEBIT_PENDING || *phonebit_last_error() != '\0',
            "a failure has a message");
  }

  /// Mostly small, sometimes anything.
  int32_t number() {
    return bytes_.ConsumeIntegralInRange(0, 7) != 0 ? bytes_.ConsumeIntegralInRange(-1, 5)
                                                    : bytes_.ConsumeIntegral<int32_t>();
  }
  /// A slot, which may hold NULL.
  template <class Handle>
  Handle*& slot(Handle* (&slots)[3]) {
    return slots[bytes_.ConsumeIntegralInRange(0, 2)];
  }
  /// Memory of exactly this size, at an address of any alignment, that stays until the end.
  uint8_t* memory(size_t size) {
    const size_t shift = bytes_.ConsumeIntegralInRange<size_t>(0, 15) == 0 ? 1 : 0;
    kept_.emplace_back(size + shift, uint8_t{1});
    return kept_.back().data() + shift;
  }
  uint8_t* zeros(size_t size) {
    kept_.emplace_back(size);
    return kept_.back().data();
  }
  /// A text that stays until the end, or NULL.
  const char* text() {
    static const char* const known[] = {"cpu", "cpu:scalar", "cpu:avx2", "gpu",      "gpu+cpu",   "auto",
                                        "",    "x",          "image",    "cpu:neon", "\xFF\n%s%n"};
    if (bytes_.ConsumeIntegralInRange(0, 9) == 0) return nullptr;
    if (bytes_.ConsumeBool()) return bytes_.PickValueInArray(known);
    texts_.push_back(bytes_.ConsumeRandomLengthString(40));
    return texts_.back().c_str();
  }
  /// A structure whose memory ends where its struct_size says, or NULL.
  template <class Struct>
  Struct* structure() {
    const int kind = bytes_.ConsumeIntegralInRange(0, 9);
    if (kind == 0) return nullptr;
    auto size = static_cast<uint32_t>(sizeof(Struct));
    if (kind == 1) size = bytes_.ConsumeIntegralInRange<uint32_t>(0, 2 * sizeof(Struct));
    if (kind == 2) size = bytes_.ConsumeIntegral<uint32_t>();
    const size_t room = std::max<size_t>(std::min<size_t>(size, 2 * sizeof(Struct)), sizeof size);
    kept_.emplace_back(room);
    std::memcpy(kept_.back().data(), &size, sizeof size);
    return reinterpret_cast<Struct*>(kept_.back().data());
  }
  int32_t* integer() { return bytes_.ConsumeIntegralInRange(0, 9) == 0 ? nullptr : &integer_; }

  void call() {
    switch (bytes_.ConsumeIntegralInRange(0, 11)) {
      case 0:
        return judge(phonebit_options_create(emptied(slot(options_), phonebit_options_destroy)));
      case 1:
      case 2:
        return set_option(slot(options_));
      case 3:
      case 4:
        return load();
      case 5:
      case 6:
        return read_facts(slot(networks_));
      case 7:
      case 8:
        return run_network(slot(networks_));
      case 9:
        return use_job();
      case 10:
        return prepare_image(slot(networks_));
      default:
        return build(slot(builders_));
    }
  }

  /// The slot without its object.
  template <class Handle>
  Handle** emptied(Handle*& handle, void (*destroy)(Handle*)) {
    destroy(handle);
    handle = nullptr;
    return bytes_.ConsumeIntegralInRange(0, 15) == 0 ? nullptr : &handle;
  }

  void set_option(phonebit_options* options) {
    switch (bytes_.ConsumeIntegralInRange(0, 13)) {
      case 0:
        return judge(phonebit_options_set_device(options, text()));
      case 1:
        return judge(phonebit_options_set_threads(options, number()));
      case 2:
        return judge(phonebit_options_set_cores(options, number()));
      case 3: {
        const int32_t core = number();
        return judge(phonebit_options_set_core_list(options, bytes_.ConsumeBool() ? &core : nullptr,
                                                    bytes_.ConsumeIntegralInRange(-1, 1)));
      }
      case 4:
        return judge(phonebit_options_set_hint(options, number()));
      case 5:
        return judge(phonebit_options_set_precision(options, number()));
      case 6: {
        phonebit_planned_part part{number(), number(), number(), {number(), number(), number(), number()}};
        return judge(phonebit_options_set_plan(options, &part, bytes_.ConsumeIntegralInRange(-1, 1)));
      }
      case 7:
        return judge(phonebit_options_set_sharing(options, number()));
      case 8:
        return judge(phonebit_options_set_synchronization(options, number()));
      case 9:
        return judge(phonebit_options_set_max_work(options, bytes_.ConsumeFloatingPoint<double>()));
      case 10:
        return judge(phonebit_options_set_in_place(options, number()));
      case 11:
        return judge(phonebit_options_set_tuning(options, text()));
      case 12:
        return judge(phonebit_options_set_profiling(options, number()));
      default:
        return judge(phonebit_options_set_max_memory(options, bytes_.ConsumeIntegral<uint64_t>()));
    }
  }

  void load() {
    phonebit_network** const result = emptied(slot(networks_), phonebit_network_destroy);
    phonebit_options* const options = slot(options_);
    switch (bytes_.ConsumeIntegralInRange(0, 5)) {
      case 0:
        return judge(phonebit_network_load_path(text(), options, result));
      case 1:
        return judge(phonebit_network_load_fd(-1, bytes_.ConsumeIntegral<int64_t>(),
                                              bytes_.ConsumeIntegral<int64_t>(), options, result));
      case 2: {
        const size_t size = bytes_.ConsumeIntegralInRange<size_t>(0, model().size());
        uint8_t* const copy = memory(size);
        std::copy_n(model().begin(), size, copy);
        return judge(
            phonebit_network_load_memory(bytes_.ConsumeBool() ? copy : nullptr, size, options, result));
      }
      default: {
        uint8_t* const copy = memory(model().size());
        std::copy(model().begin(), model().end(), copy);
        return judge(phonebit_network_load_memory(copy, model().size(), options, result));
      }
    }
  }

  void read_facts(phonebit_network* network) {
    const char* text_of = nullptr;
    switch (bytes_.ConsumeIntegralInRange(0, 15)) {
      case 0:
        return judge(phonebit_network_input_count(network, integer()));
      case 1:
        return judge(phonebit_network_input_get(network, number(), structure<phonebit_tensor_info>()));
      case 2:
        return judge(phonebit_network_output_get(network, number(), structure<phonebit_tensor_info>()));
      case 3:
        return judge(phonebit_network_layer_get(network, number(), structure<phonebit_layer_info>()));
      case 4:
        return judge(phonebit_network_find_input(network, text(), integer()));
      case 6:
        return judge(phonebit_network_label_get(network, number(), &text_of));
      case 7:
        return judge(phonebit_network_memory(network, structure<phonebit_memory_info>()));
      case 9:
        return judge(phonebit_network_metadata(network, bytes_.ConsumeBool() ? &text_of : nullptr));
      case 10:
        return judge(phonebit_network_detection(network, number(), structure<phonebit_detection>()));
      case 11:
        return judge(phonebit_network_preprocessing(network, number(), structure<phonebit_preprocessing>()));
      case 12:
        return judge(phonebit_network_coexec(network, structure<phonebit_coexec_info>()));
      case 13:
        return judge(phonebit_network_warning_count(network, integer()));
      case 14:
        return judge(phonebit_network_plan(network, nullptr, number(), integer()));
      default:
        return judge(phonebit_core_get(number(), structure<phonebit_core_info>()));
    }
  }

  /// Buffers of the right sizes, but for what the bytes change.
  template <class Buffer>
  void distort(std::vector<Buffer>& buffers, size_t batch) {
    for (Buffer& buffer : buffers) {
      size_t size = buffer.bytes * batch;
      if (bytes_.ConsumeIntegralInRange(0, 9) == 0) size += bytes_.ConsumeIntegralInRange(-4, 4);
      buffer.data = bytes_.ConsumeIntegralInRange(0, 15) == 0 ? nullptr : memory(size);
      buffer.bytes = size;
    }
    if (bytes_.ConsumeIntegralInRange(0, 9) == 0) buffers.resize(bytes_.ConsumeIntegralInRange(0, 3));
  }

  void run_network(phonebit_network* network) {
    if (network == nullptr) return judge(phonebit_network_forward(network, nullptr, 0, nullptr, 0, 1));
    phonebit::fuzz::OnePass pass(network);
    const int32_t batch = bytes_.ConsumeIntegralInRange(-1, 3);
    distort(pass.inputs, static_cast<size_t>(std::max(batch, 1)));
    distort(pass.results, static_cast<size_t>(std::max(batch, 1)));
    if (bytes_.ConsumeIntegralInRange(0, 15) == 0 && !pass.inputs.empty() && !pass.results.empty())
      pass.results[0].data = const_cast<void*>(pass.inputs[0].data);
    const auto in = static_cast<int32_t>(pass.inputs.size()), out = static_cast<int32_t>(pass.results.size());
    double times[8] = {};
    switch (bytes_.ConsumeIntegralInRange(0, 5)) {
      case 0:
        return judge(phonebit_network_profile(network, pass.inputs.data(), in, batch, number() % 3, times,
                                              bytes_.ConsumeIntegralInRange(-1, 8)));
      case 1:
        return judge(phonebit_network_last_profile(network, times, bytes_.ConsumeIntegralInRange(-1, 8)));
      case 2:
      case 3: {
        phonebit_job*& job = slot(jobs_);
        phonebit_job_destroy(job);
        job = nullptr;
        return judge(phonebit_network_forward_async(network, pass.inputs.data(), in, pass.results.data(), out,
                                                    batch, nullptr, nullptr,
                                                    bytes_.ConsumeBool() ? &job : nullptr));
      }
      default:
        return judge(
            phonebit_network_forward(network, pass.inputs.data(), in, pass.results.data(), out, batch));
    }
  }

  void use_job() {
    switch (bytes_.ConsumeIntegralInRange(0, 2)) {
      case 0:
        return judge(phonebit_job_wait(slot(jobs_), bytes_.ConsumeIntegralInRange(-2, 1)));
      case 1:
        return static_cast<void>(emptied(slot(jobs_), phonebit_job_destroy));
      default:
        return judge(phonebit_network_cancel(slot(networks_)));
    }
  }

  /// Planes are as large as the largest image here needs.
  void prepare_image(phonebit_network* network) {
    auto image = PHONEBIT_INIT(phonebit_picture);
    image.format = number();
    image.width = bytes_.ConsumeIntegralInRange(-1, 40);
    image.height = bytes_.ConsumeIntegralInRange(-1, 40);
    for (int i = 0; i < 3; ++i) {
      image.row_bytes[i] = bytes_.ConsumeIntegralInRange(-1, 200);
      image.pixel_bytes[i] = bytes_.ConsumeIntegralInRange(-1, 5);
      image.planes[i] = bytes_.ConsumeIntegralInRange(0, 9) == 0 ? nullptr : zeros(41 * 200 + 41 * 5);
    }
    image.crop_left = number();
    image.crop_top = number();
    image.crop_width = number();
    image.crop_height = number();
    image.rotation = 90 * bytes_.ConsumeIntegralInRange(-1, 5);
    image.yuv = number();
    auto rule = PHONEBIT_INIT(phonebit_preprocessing);
    rule.color_order = number();
    rule.resize = number();
    rule.resize_to = bytes_.ConsumeIntegralInRange(-1, 64);
    rule.interpolation = number();
    rule.high = bytes_.ConsumeFloatingPoint<double>();
    for (double& deviation : rule.deviation) deviation = bytes_.ConsumeIntegralInRange(0, 2);
    auto tensor = PHONEBIT_INIT(phonebit_tensor_info);
    const bool is_right =
        phonebit_network_input_get(network, 0, &tensor) == PHONEBIT_OK && bytes_.ConsumeBool();
    const size_t room = is_right ? tensor.bytes : bytes_.ConsumeIntegralInRange<size_t>(0, 4096);
    judge(phonebit_network_prepare_picture(network, number(), &image, bytes_.ConsumeBool() ? &rule : nullptr,
                                           memory(room), room));
  }

  phonebit_floats floats() {
    const auto count = bytes_.ConsumeIntegralInRange<size_t>(0, 8);
    auto* values = reinterpret_cast<float*>(zeros(4 * std::max<size_t>(count, 1)));
    for (size_t i = 0; i < count; ++i) values[i] = bytes_.ConsumeFloatingPoint<float>();
    return {bytes_.ConsumeIntegralInRange(0, 9) == 0 ? nullptr : values, count};
  }

  void build(phonebit_builder*& builder) {
    switch (bytes_.ConsumeIntegralInRange(0, 7)) {
      case 0:
        return judge(phonebit_builder_create(text(), emptied(builder, phonebit_builder_destroy)));
      case 1:
        return judge(
            phonebit_builder_input(builder, text(), number(), number(), number(), number(), integer()));
      case 2: {
        auto* layer = structure<phonebit_pool>();
        if (layer != nullptr && layer->struct_size >= sizeof *layer) layer->window = window();
        return judge(bytes_.ConsumeBool()
                         ? phonebit_builder_max_pool(builder, number(), layer, integer())
                         : phonebit_builder_average_pool(builder, number(), layer, integer()));
      }
      case 3:
        return add_convolution(builder);
      case 4:
        return judge(phonebit_builder_softmax(builder, number(), text(), integer()));
      case 5:
        return judge(phonebit_builder_pointwise(builder, number(), text(), epilogue(), integer()));
      case 6:
        return judge(phonebit_builder_output(builder, number()));
      default:
        return judge(phonebit_builder_network(builder, slot(options_),
                                              emptied(slot(networks_), phonebit_network_destroy)));
    }
  }

  phonebit_window* window() {
    auto* result = structure<phonebit_window>();
    if (result == nullptr || result->struct_size < sizeof *result) return result;
    for (int32_t* field = &result->kernel_height; field <= &result->pad_right; ++field) *field = number();
    return result;
  }

  phonebit_epilogue* epilogue() {
    auto* result = structure<phonebit_epilogue>();
    if (result == nullptr || result->struct_size < sizeof *result) return result;
    result->output = number();
    result->scale = floats();
    result->bias = floats();
    result->added = number();
    result->activation = number();
    result->slopes = floats();
    return result;
  }

  void add_convolution(phonebit_builder* builder) {
    auto* layer = structure<phonebit_conv2d>();
    if (layer != nullptr && layer->struct_size >= sizeof *layer) {
      auto* weights = structure<phonebit_weights>();
      if (weights != nullptr && weights->struct_size >= sizeof *weights) {
        weights->is_binary = number();
        weights->values = floats();
      }
      layer->out_channels = number();
      layer->name = text();
      layer->window = window();
      layer->weights = weights;
      layer->epilogue = epilogue();
      layer->groups = number();
      layer->pad_value = number();
    }
    judge(phonebit_builder_conv2d(builder, number(), layer, integer()));
  }

  FuzzedDataProvider bytes_;
  phonebit_options* options_[3] = {};
  phonebit_network* networks_[3] = {};
  phonebit_job* jobs_[3] = {};
  phonebit_builder* builders_[3] = {};
  int32_t integer_ = 0;
  std::deque<Bytes> kept_;
  std::deque<std::string> texts_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Program(data, size).run();
  return 0;
}
