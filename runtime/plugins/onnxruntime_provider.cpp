// The execution provider for ONNX Runtime, as a library that it loads (RegisterExecutionProviderLibrary). It takes
// nodes EPContext whose source is PhoneBit: each holds a .pbit file, made by phonebit.onnxruntime.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compiled_part.h"
#include "onnxruntime_api.h"
#include "onnxruntime_status.h"
#include "types/fail.h"

namespace phonebit::engine::plugins {
namespace {

constexpr char kName[] = "PhoneBit";
constexpr char kThreads[] = "ep.phonebit.threads";  // ONNX Runtime's way to write a provider's option

std::string attribute_of(const OrtApi& api, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* absent = api.Node_GetAttributeByName(node, name, &attribute);
  if (absent != nullptr) api.ReleaseStatus(absent);
  if (attribute == nullptr) return {};
  size_t bytes = 0;
  OrtStatus* too_small = api.ReadOpAttr(attribute, ORT_OP_ATTR_STRING, nullptr, 0, &bytes);
  if (too_small != nullptr) api.ReleaseStatus(too_small);
  std::string text(bytes, '\0');
  check(api.ReadOpAttr(attribute, ORT_OP_ATTR_STRING, text.data(), bytes, &bytes));
  return text;
}

std::vector<const OrtNode*> nodes_of(const OrtApi& api, const OrtGraph* graph) {
  size_t count = 0;
  check(api.Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode*> nodes(count);
  check(api.Graph_GetNodes(graph, nodes.data(), count));
  return nodes;
}

std::vector<std::string> outputs_of(const OrtApi& api, const OrtNode* node) {
  size_t count = 0;
  check(api.Node_GetNumOutputs(node, &count));
  std::vector<const OrtValueInfo*> values(count);
  check(api.Node_GetOutputs(node, values.data(), count));
  std::vector<std::string> names;
  for (const OrtValueInfo* value : values) {
    const char* name = "";
    if (value != nullptr) check(api.GetValueInfoName(value, &name));
    names.emplace_back(name);
  }
  return names;
}

bool is_ours(const OrtApi& api, const OrtNode* node) {
  const char *kind = nullptr, *domain = nullptr;
  check(api.Node_GetOperatorType(node, &kind));
  check(api.Node_GetDomain(node, &domain));
  return std::strcmp(kind, "EPContext") == 0 && std::strcmp(domain, "com.microsoft") == 0 &&
         std::strcmp(attribute_of(api, node, "source").c_str(), kName) == 0;
}

/// One node while it runs.
class Node : public OrtNodeComputeInfo {
 public:
  /// `outputs`: names of what ONNX Runtime wants of the node, perhaps not all of it.
  Node(const OrtApi& api, const OrtNode* node, const std::vector<std::string>& outputs, int threads)
      : OrtNodeComputeInfo{}, api_(api) {
    ort_version_supported = ORT_API_VERSION;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
      *state = self;
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
      auto& own = *static_cast<Node*>(self);
      return status_of(own.api_, [&] { own.compute(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) {};
    const std::string file = attribute_of(api, node, "ep_cache_context");
    PartForm form = PartForm::of_text(attribute_of(api, node, "notes").c_str());
    if (file.size() < form.file_bytes) fail_damaged("the file in the node has %zu bytes", file.size());
    part_ = std::make_unique<CompiledPart>(file.data(), std::move(form), threads);
    for (const std::string& name : outputs_of(api, node)) {
      places_.push_back(-1);
      for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] == name) places_.back() = static_cast<int>(i);
    }
    if (places_.size() != part_->form().outputs.size())
      fail_damaged("the node has other outputs than its file");
  }

 private:
  void compute(OrtKernelContext* context) {
    const PartForm& form = part_->form();
    size_t count = 0;
    check(api_.KernelContext_GetInputCount(context, &count));
    if (count != form.inputs.size())
      fail(ErrorCode::input, "got %zu inputs, expected %zu", count, form.inputs.size());
    std::vector<const void*> inputs;
    int64_t batch = -1;
    for (size_t i = 0; i < count; ++i) inputs.push_back(input(context, i, batch));
    std::vector<float*> outputs;
    for (size_t i = 0; i < places_.size(); ++i)
      outputs.push_back(places_[i] < 0 ? nullptr : output(context, form.outputs[i], places_[i], batch));
    if (batch > 0) part_->run(inputs, outputs, static_cast<int>(batch));
  }

  /// Its memory; `batch` is compared, and set if it is below 0.
  const void* input(const OrtKernelContext* context, size_t index, int64_t& batch) const {
    const OrtValue* value = nullptr;
    check(api_.KernelContext_GetInput(context, index, &value));
    check_form(value, index, batch);
    void* data = nullptr;
    check(api_.GetTensorMutableData(const_cast<OrtValue*>(value), &data));
    return data;
  }

  void check_form(const OrtValue* value, size_t index, int64_t& batch) const {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    check(api_.GetTensorTypeAndShape(value, &info));
    const auto release = [this](OrtTensorTypeAndShapeInfo* held) {
      api_.ReleaseTensorTypeAndShapeInfo(held);
    };
    const std::unique_ptr<OrtTensorTypeAndShapeInfo, decltype(release)> holder(info, release);
    ONNXTensorElementDataType type{};
    size_t rank = 0;
    check(api_.GetTensorElementType(info, &type));
    check(api_.GetDimensionsCount(info, &rank));
    std::vector<int64_t> sizes(rank);
    check(api_.GetDimensions(info, sizes.data(), rank));
    const auto expected =
        part_->takes_bytes(index) ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    if (type != expected) fail(ErrorCode::input, "input %zu: got another element type", index);
    std::vector<int64_t> whole = part_->form().inputs[index].sizes;
    whole.insert(whole.begin(), batch >= 0 || rank == 0 ? batch : sizes[0]);
    if (sizes != whole || whole[0] > INT32_MAX)
      fail(ErrorCode::input, "input %zu: got shape (%s), expected (%s)", index, text_of(sizes).c_str(),
           text_of(whole).c_str());
    batch = whole[0];
  }

  static std::string text_of(const std::vector<int64_t>& sizes) {
    std::string text;
    for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return text;
  }

  float* output(OrtKernelContext* context, const TensorForm& form, int place, int64_t batch) const {
    std::vector<int64_t> sizes = form.sizes;
    sizes.insert(sizes.begin(), batch);
    OrtValue* value = nullptr;
    check(api_.KernelContext_GetOutput(context, static_cast<size_t>(place), sizes.data(), sizes.size(),
                                       &value));
    void* data = nullptr;
    check(api_.GetTensorMutableData(value, &data));
    return static_cast<float*>(data);
  }

  const OrtApi& api_;
  std::unique_ptr<CompiledPart> part_;
  std::vector<int> places_;  // of the file's outputs among those that are wanted; -1: not wanted
};

/// The provider of one session.
class Provider : public OrtEp {
 public:
  Provider(const OrtApi& api, int threads) : OrtEp{}, api_(api), threads_(threads) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEp*) { return kName; };
    GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) -> OrtStatus* {
      auto& own = *static_cast<Provider*>(self);
      return status_of(own.api_, [&] {
        for (const OrtNode* node : nodes_of(own.api_, graph))
          if (is_ours(own.api_, node))
            check(own.api_.GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(info, &node, 1, nullptr));
      });
    };
    Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                 OrtNodeComputeInfo** results, OrtNode**) -> OrtStatus* {
      auto& own = *static_cast<Provider*>(self);
      return status_of(own.api_, [&] { own.compile(graphs, fused, count, results); });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** nodes, size_t count) {
      for (size_t i = 0; i < count; ++i) delete static_cast<Node*>(nodes[i]);
    };
  }

 private:
  void compile(const OrtGraph** graphs, const OrtNode** fused, size_t count,
               OrtNodeComputeInfo** results) const {
    std::vector<std::unique_ptr<Node>> made;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<const OrtNode*> nodes = nodes_of(api_, graphs[i]);
      made.push_back(std::make_unique<Node>(api_, nodes.at(0), outputs_of(api_, fused[i]), threads_));
    }
    for (size_t i = 0; i < count; ++i) results[i] = made[i].release();
  }

  const OrtApi& api_;
  const int threads_;
};

int threads_of(const OrtApi& api, const OrtSessionOptions* options) {
  int is_given = 0;
  check(api.HasSessionConfigEntry(options, kThreads, &is_given));
  if (is_given == 0) return 0;
  char text[16] = {};
  size_t bytes = sizeof text;
  OrtStatus* too_long = api.GetSessionConfigEntry(options, kThreads, text, &bytes);
  if (too_long != nullptr) api.ReleaseStatus(too_long);
  char* end = nullptr;
  const long threads = std::strtol(text, &end, 10);
  if (too_long != nullptr || end == text || *end != '\0' || threads < 0 || threads > INT32_MAX)
    fail(ErrorCode::input, "option threads: got '%s', expected 0 (all processors) or a number of threads",
         text);
  return static_cast<int>(threads);
}

class Factory : public OrtEpFactory {
 public:
  explicit Factory(const OrtApi& api) : OrtEpFactory{}, api_(api) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory*) { return kName; };
    GetVendor = [](const OrtEpFactory*) { return kName; };
    GetVendorId = [](const OrtEpFactory*) { return uint32_t{0}; };
    GetVersion = [](const OrtEpFactory*) { return version(); };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                             OrtEpDevice** results, size_t most, size_t* found) -> OrtStatus* {
      const OrtApi& api = static_cast<Factory*>(self)->api_;
      *found = 0;
      return status_of(api, [&] {
        for (size_t i = 0; i < count && *found < most; ++i) {
          if (api.HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
          check(api.GetEpApi()->CreateEpDevice(self, devices[i], nullptr, nullptr, &results[*found]));
          ++*found;
        }
      });
    };
    CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                  const OrtSessionOptions* options, const OrtLogger*, OrtEp** provider) -> OrtStatus* {
      const OrtApi& api = static_cast<Factory*>(self)->api_;
      return status_of(api, [&] { *provider = new Provider(api, threads_of(api, options)); });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) { delete static_cast<Provider*>(provider); };
    // Tensors are in ordinary memory.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) -> OrtStatus* {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) -> OrtStatus* {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) { return false; };
  }

 private:
  const OrtApi& api_;
};

}  // namespace
}  // namespace phonebit::engine::plugins

namespace ours = phonebit::engine::plugins;

extern "C" __attribute__((visibility("default"))) ours::OrtStatus* CreateEpFactories(
    const char*, const ours::OrtApiBase* base, const ours::OrtLogger*, ours::OrtEpFactory** factories,
    size_t most, size_t* count) {
  *count = 0;
  const ours::OrtApi* api = base->GetApi(ours::ORT_API_VERSION);
  if (api == nullptr)
    return base->GetApi(1)->CreateStatus(ours::ORT_EP_FAIL, "PhoneBit needs ONNX Runtime 1.23 or later");
  return ours::status_of(*api, [&] {
    if (most == 0) return;
    static auto* const factory = new ours::Factory(*api);
    factories[0] = factory;
    *count = 1;
  });
}

// A session that outlives its library's registration asks the factory to release its provider: so the factory stays,
// and so does the library (-z nodelete).
extern "C" __attribute__((visibility("default"))) ours::OrtStatus* ReleaseEpFactory(ours::OrtEpFactory*) {
  return nullptr;
}
