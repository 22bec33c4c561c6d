// Loading a network, and what is known of it.
#include <iterator>
#include <string>

#include "arguments.h"
#include "descriptions.h"
#include "handles.h"
#include "status.h"

using namespace phonebit::engine::c_api;
using phonebit::engine::ErrorCode;
using phonebit::engine::fail;
using phonebit::engine::Network;
using phonebit::engine::TensorInfo;

static_assert(static_cast<int>(phonebit::engine::ElementType::bit) == PHONEBIT_TYPE_BIT &&
              static_cast<int>(phonebit::engine::ElementType::u8) == PHONEBIT_TYPE_U8 &&
              static_cast<int>(phonebit::engine::ElementType::f32) == PHONEBIT_TYPE_F32);
static_assert(static_cast<int>(phonebit::engine::HeadKind::yolov2) == PHONEBIT_HEAD_YOLOV2);
static_assert(sizeof(phonebit_anchor) == sizeof(phonebit::engine::Anchor));

namespace {

const Network& of(const phonebit_network* network) { return given(network, "network").network; }

/// `load` gives a Network.
template <class Load>
phonebit_status load_network(phonebit_network** network, const Load& load) {
  return guarded([&] {
    phonebit_network*& result = given(network, "network");
    result = new phonebit_network(load());
  });
}

template <class List>
phonebit_status give_count(int32_t* count, const List& list) {
  return guarded([&] {
    int32_t& result = given(count, "count");
    result = static_cast<int32_t>(list().size());
  });
}

void give_tensor(const std::vector<TensorInfo>& tensors, const char* what, int32_t index,
                 phonebit_tensor_info* info) {
  phonebit_tensor_info& result = given(info, "info");
  const TensorInfo& tensor = tensors[checked_index(index, tensors.size(), what)];
  give(result, tensor_description(tensor), "phonebit_tensor_info");
}

void find_tensor(const std::vector<TensorInfo>& tensors, const char* what, const char* name, int32_t* index) {
  int32_t& result = given(index, "index");
  const std::string wanted = given_text(name, "name");
  std::string names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == wanted) {
      result = static_cast<int32_t>(i);
      return;
    }
    names += (i > 0 ? ", '" : "'") + tensors[i].name + "'";
  }
  fail(ErrorCode::input, "%s '%s' does not exist; there are: %s", what, wanted.c_str(), names.c_str());
}

}  // namespace

phonebit_tensor_info phonebit::engine::c_api::tensor_description(const TensorInfo& tensor) {
  phonebit_tensor_info content{};
  content.type = static_cast<phonebit_type>(tensor.dtype);
  content.name = tensor.name.c_str();
  content.height = tensor.height;
  content.width = tensor.width;
  content.channels = tensor.channels;
  content.bytes = tensor.bytes();
  return content;
}

phonebit_status phonebit_network_load_path(const char* path, const phonebit_options* options,
                                           phonebit_network** network) {
  return load_network(network, [&] { return Network::load(given_text(path, "path"), options_of(options)); });
}

phonebit_status phonebit_network_load_memory(const void* data, size_t bytes, const phonebit_options* options,
                                             phonebit_network** network) {
  return load_network(network, [&] {
    given(static_cast<const char*>(data), "data");
    return Network::load_memory(data, bytes, options_of(options));
  });
}

phonebit_status phonebit_network_load_fd(int32_t fd, int64_t offset, int64_t bytes,
                                         const phonebit_options* options, phonebit_network** network) {
  return load_network(network,
                      [&] { return Network::load_descriptor(fd, offset, bytes, options_of(options)); });
}

void phonebit_network_destroy(phonebit_network* network) { delete network; }

phonebit_status phonebit_network_input_count(const phonebit_network* network, int32_t* count) {
  return give_count(count, [&]() -> auto& { return of(network).inputs(); });
}

phonebit_status phonebit_network_input_get(const phonebit_network* network, int32_t index,
                                           phonebit_tensor_info* info) {
  return guarded([&] { give_tensor(of(network).inputs(), "inputs", index, info); });
}

phonebit_status phonebit_network_output_count(const phonebit_network* network, int32_t* count) {
  return give_count(count, [&]() -> auto& { return of(network).outputs(); });
}

phonebit_status phonebit_network_output_get(const phonebit_network* network, int32_t index,
                                            phonebit_tensor_info* info) {
  return guarded([&] { give_tensor(of(network).outputs(), "outputs", index, info); });
}

phonebit_status phonebit_network_layer_count(const phonebit_network* network, int32_t* count) {
  return give_count(count, [&]() -> auto& { return of(network).layers(); });
}

phonebit_status phonebit_network_layer_get(const phonebit_network* network, int32_t index,
                                           phonebit_layer_info* info) {
  return guarded([&] {
    const auto& layers = of(network).layers();
    phonebit_layer_info& result = given(info, "info");
    const phonebit::engine::LayerInfo& layer = layers[checked_index(index, layers.size(), "layers")];
    phonebit_layer_info content{};
    content.is_binary = layer.binary ? 1 : 0;
    content.name = layer.name.c_str();
    content.kind = layer.kind.c_str();
    content.kernel = layer.kernel.c_str();
    content.macs = layer.macs;
    content.weight_bytes = static_cast<uint64_t>(layer.weight_bytes);
    give(result, content, "phonebit_layer_info");
  });
}

phonebit_status phonebit_network_find_input(const phonebit_network* network, const char* name,
                                            int32_t* index) {
  return guarded([&] { find_tensor(of(network).inputs(), "input", name, index); });
}

phonebit_status phonebit_network_find_output(const phonebit_network* network, const char* name,
                                             int32_t* index) {
  return guarded([&] { find_tensor(of(network).outputs(), "output", name, index); });
}

phonebit_status phonebit_network_label_count(const phonebit_network* network, int32_t* count) {
  return give_count(count, [&]() -> auto& { return of(network).labels(); });
}

phonebit_status phonebit_network_label_get(const phonebit_network* network, int32_t index,
                                           const char** label) {
  return guarded([&] {
    const auto& labels = of(network).labels();
    given(label, "label") = labels[checked_index(index, labels.size(), "labels")].c_str();
  });
}

phonebit_status phonebit_network_memory(const phonebit_network* network, phonebit_memory_info* info) {
  return guarded([&] {
    const phonebit::engine::MemoryInfo memory = of(network).memory();
    give(given(info, "info"),
         {0, memory.arena_bytes, memory.lower_bound_bytes, memory.scratch_bytes, memory.weight_bytes,
          memory.file_bytes},
         "phonebit_memory_info");
  });
}

phonebit_status phonebit_network_startup(const phonebit_network* network, phonebit_startup_info* info) {
  return guarded([&] {
    const phonebit::engine::StartupInfo startup = of(network).startup();
    give(given(info, "info"),
         {0, startup.programs_built, startup.programs_loaded, startup.cache_entries_rejected,
          startup.self_tests_run, startup.build_ms, startup.uses_command_buffer},
         "phonebit_startup_info");
  });
}

phonebit_status phonebit_network_metadata(const phonebit_network* network, const char** json) {
  return guarded([&] {
    const std::string& metadata = of(network).metadata();
    given(json, "json") = metadata.c_str();
  });
}

phonebit_status phonebit_network_device(const phonebit_network* network, const char** device) {
  return guarded([&] {
    const std::string& text = given(network, "network").device;
    given(device, "device") = text.c_str();
  });
}

phonebit_status phonebit_network_threads(const phonebit_network* network, int32_t* threads) {
  return guarded([&] {
    const Network& own = of(network);
    given(threads, "threads") = own.threads();
  });
}

phonebit_status phonebit_network_plan_key(const phonebit_network* network, const char** key) {
  return guarded([&] {
    const std::string& text = given(network, "network").plan_key;
    given(key, "key") = text.c_str();
  });
}

phonebit_status phonebit_network_detection(const phonebit_network* network, int32_t output,
                                           phonebit_detection* detection) {
  return guarded([&] {
    const Network& own = of(network);
    phonebit_detection& result = given(detection, "detection");
    checked_index(output, own.outputs().size(), "outputs");
    phonebit_detection content{};
    for (const phonebit::engine::DetectionHead& head : own.detection()) {
      if (head.output != output) continue;
      content.head = static_cast<phonebit_head>(head.kind);
      content.anchor_count = static_cast<int32_t>(head.anchors.size());
      content.anchors = reinterpret_cast<const phonebit_anchor*>(head.anchors.data());
    }
    give(result, content, "phonebit_detection");
  });
}

phonebit_status phonebit_network_warning_count(phonebit_network* network, int32_t* count) {
  return guarded([&] {
    Warnings& warnings = given(network, "network").warnings;
    int32_t& result = given(count, "count");
    const std::lock_guard<std::mutex> lock(warnings.mutex);
    for (const std::string& text : network->network.warnings())
      if (std::find(warnings.texts.begin(), warnings.texts.end(), text) == warnings.texts.end())
        warnings.texts.push_back(text);
    result = static_cast<int32_t>(warnings.texts.size());
  });
}

phonebit_status phonebit_network_warning_get(phonebit_network* network, int32_t index, const char** text) {
  return guarded([&] {
    Warnings& warnings = given(network, "network").warnings;
    const char*& result = given(text, "text");
    const std::lock_guard<std::mutex> lock(warnings.mutex);
    const size_t place = checked_index(index, warnings.texts.size(), "warnings");
    result = std::next(warnings.texts.begin(), static_cast<ptrdiff_t>(place))->c_str();
  });
}
