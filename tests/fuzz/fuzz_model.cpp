// Any bytes as a .pbit file: they are refused with a message, or run with equal results on every instruction
// set of this processor. PHONEBIT_FUZZ_OPENCL=1: on the first OpenCL device, too, which is slow.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "one_pass.h"

using namespace phonebit::fuzz;

namespace {

struct Destroy {
  void operator()(phonebit_options* options) const { phonebit_options_destroy(options); }
  void operator()(phonebit_network* network) const { phonebit_network_destroy(network); }
};
using Options = std::unique_ptr<phonebit_options, Destroy>;
using Network = std::unique_ptr<phonebit_network, Destroy>;

/// What is accepted runs in milliseconds.
Options options_of(const char* device) {
  constexpr double kMaxWork = 2e6;
  constexpr uint64_t kMaxMemory = uint64_t{16} << 20;
  phonebit_options* options = nullptr;
  succeed(phonebit_options_create(&options), "options_create");
  succeed(phonebit_options_set_device(options, device), "set_device");
  succeed(phonebit_options_set_threads(options, 1), "set_threads");
  succeed(phonebit_options_set_max_work(options, kMaxWork), "set_max_work");
  succeed(phonebit_options_set_max_memory(options, kMaxMemory), "set_max_memory");
  return Options(options);
}

/// Options for each processor here.
const std::vector<Options>& processors() {
  static const std::vector<Options> all = [] {
    std::vector<Options> found;
    int32_t count = 0;
    succeed(phonebit_device_count(&count), "device_count");
    for (int32_t i = 0; i < count; ++i) {
      auto device = PHONEBIT_INIT(phonebit_device_info);
      succeed(phonebit_device_get(i, &device), "device_get");
      if (device.kind == PHONEBIT_DEVICE_CPU && device.is_supported != 0)
        found.push_back(options_of(device.name));
    }
    if (std::getenv("PHONEBIT_FUZZ_OPENCL") != nullptr) found.push_back(options_of("gpu"));
    return found;
  }();
  return all;
}

/// Null for a file that is refused.
Network load(const uint8_t* data, size_t size, const phonebit_options* options) {
  phonebit_network* network = nullptr;
  const phonebit_status status = phonebit_network_load_memory(data, size, options, &network);
  if (status == PHONEBIT_OK) return Network(network);
  require(status == PHONEBIT_ERROR_FORMAT || status == PHONEBIT_ERROR_DEVICE ||
              (status == PHONEBIT_ERROR_INPUT && size == 0),
          "a file is refused as what it is");
  require(network == nullptr && *phonebit_last_error() != '\0', "a refusal has a message and no network");
  return nullptr;
}

/// Every text and number that the file gave is there.
void read_facts(phonebit_network* network) {
  int32_t count = 0;
  volatile size_t length = 0;
  const auto read = [&](const char* text) { length = length + std::strlen(text); };
  succeed(phonebit_network_layer_count(network, &count), "layer_count");
  for (int32_t i = 0; i < count; ++i) {
    auto layer = PHONEBIT_INIT(phonebit_layer_info);
    succeed(phonebit_network_layer_get(network, i, &layer), "layer_get");
    for (const char* text : {layer.name, layer.kind, layer.kernel}) read(text);
  }
  succeed(phonebit_network_label_count(network, &count), "label_count");
  for (int32_t i = 0; i < count; ++i) {
    const char* label = nullptr;
    succeed(phonebit_network_label_get(network, i, &label), "label_get");
    read(label);
  }
  const char* metadata = nullptr;
  succeed(phonebit_network_metadata(network, &metadata), "metadata");
  read(metadata);
  succeed(phonebit_network_output_count(network, &count), "output_count");
  for (int32_t i = 0; i < count; ++i) {
    auto head = PHONEBIT_INIT(phonebit_detection);
    succeed(phonebit_network_detection(network, i, &head), "detection");
    for (int32_t anchor = 0; anchor < head.anchor_count; ++anchor)
      require(head.anchors[anchor].width > 0, "anchors are positive");
  }
}

/// A small image by the file's own rules.
void prepare_images(phonebit_network* network) {
  static const uint8_t pixels[7 * 5 * 3] = {1, 2, 3, 200};
  auto image = PHONEBIT_INIT(phonebit_picture);
  image.format = PHONEBIT_PICTURE_RGB;
  image.width = 7;
  image.height = 5;
  image.planes[0] = pixels;
  int32_t count = 0;
  succeed(phonebit_network_input_count(network, &count), "input_count");
  for (int32_t i = 0; i < count; ++i) {
    auto tensor = PHONEBIT_INIT(phonebit_tensor_info);
    auto rule = PHONEBIT_INIT(phonebit_preprocessing);
    succeed(phonebit_network_input_get(network, i, &tensor), "input_get");
    succeed(phonebit_network_preprocessing(network, i, &rule), "preprocessing");
    if (rule.resize_to > 1000 || tensor.bytes > size_t{1} << 18) continue;  // seconds
    std::vector<uint8_t> prepared(tensor.bytes);
    const phonebit_status status =
        phonebit_network_prepare_picture(network, i, &image, nullptr, prepared.data(), prepared.size());
    require(status == PHONEBIT_OK || status == PHONEBIT_ERROR_INPUT, "an image is prepared or refused");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<Outputs> expected;
  for (const Options& options : processors()) {
    const Network network = load(data, size, options.get());
    if (network == nullptr) {
      if (!expected) return 0;
      continue;  // instruction sets differ in the memory that they need
    }
    if (!expected) {
      read_facts(network.get());
      prepare_images(network.get());
    }
    OnePass pass(network.get());
    succeed(pass.run(), "what loads runs");
    if (!expected) expected = pass.outputs();
    require(pass.outputs() == *expected, "all processors give the same outputs");
  }
  return 0;
}
