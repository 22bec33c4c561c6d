// What JavaScript calls of the engine. Numbers and texts only: a network's description is JSON, its inputs and outputs
// are memory that JavaScript fills and reads.
//
// Each call that can fail says so by its result; phonebit_web_error then has the reason. A module serves one thread of
// JavaScript, which owns it; the engine's own threads are none of JavaScript's.
#include <emscripten.h>

#include <new>
#include <string>
#include <vector>

#include "engine/network.h"
#include "images/image.h"
#include "images/image_layout.h"
#include "json.h"
#include "types/fail.h"

using namespace phonebit::engine;
using phonebit::tools::JsonWriter;

namespace {

using Bytes = std::vector<unsigned char>;

std::string last_error;

/// The result of `action`, or `otherwise` if it throws.
template <class Result, class Action>
Result guarded(Result otherwise, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    last_error = error.what();
  } catch (const std::bad_alloc&) {
    last_error = "not enough memory: a page has at most 2 GB for PhoneBit";
  } catch (const std::exception& error) {
    last_error = std::string(error.what()) + " (this is a bug in PhoneBit)";
  }
  return otherwise;
}

const char* name_of(ElementType type) {
  return type == ElementType::bit ? "bit" : type == ElementType::u8 ? "u8" : "f32";
}

void describe(JsonWriter& json, const char* key, const std::vector<TensorInfo>& tensors) {
  json.key(key).begin_array();
  for (const TensorInfo& tensor : tensors) {
    json.begin_object().text("name", tensor.name).text("dtype", name_of(tensor.dtype));
    json.whole("height", tensor.height).whole("width", tensor.width).whole("channels", tensor.channels);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

/// A loaded network with memory for its inputs and outputs.
struct PhoneBitWebNetwork {
  Network network;
  std::string text;  // of the last call that returned one
  std::vector<Bytes> inputs, outputs;
  Bytes image;  // RGBA

  explicit PhoneBitWebNetwork(Network&& loaded) : network(std::move(loaded)) {
    inputs.resize(network.inputs().size());
    outputs.resize(network.outputs().size());
  }
  std::vector<InputBuffer> input_buffers() const {
    std::vector<InputBuffer> buffers;
    for (const Bytes& bytes : inputs) buffers.push_back({bytes.data(), bytes.size()});
    return buffers;
  }
};

extern "C" {

/// Why the last call failed.
EMSCRIPTEN_KEEPALIVE const char* phonebit_web_error() { return last_error.c_str(); }

EMSCRIPTEN_KEEPALIVE const char* phonebit_web_version() { return version(); }

/// The network of a file's bytes, which may go afterwards; null: it failed. `device` as Options::device.
EMSCRIPTEN_KEEPALIVE PhoneBitWebNetwork* phonebit_web_load(const void* data, size_t bytes, const char* device,
                                                           int threads) {
  return guarded<PhoneBitWebNetwork*>(nullptr, [&] {
    Options options;
    options.device = device;
    options.threads = threads;
    return new PhoneBitWebNetwork(Network::load_memory(data, bytes, options));
  });
}

EMSCRIPTEN_KEEPALIVE void phonebit_web_destroy(PhoneBitWebNetwork* own) { delete own; }

/// Everything that is known of it, as JSON.
EMSCRIPTEN_KEEPALIVE const char* phonebit_web_describe(PhoneBitWebNetwork* own) {
  return guarded<const char*>(nullptr, [&] {
    const Network& network = own->network;
    JsonWriter json(JsonWriter::Layout::one_line);
    json.begin_object().text("device", network.device()).whole("threads", network.threads());
    describe(json, "inputs", network.inputs());
    describe(json, "outputs", network.outputs());
    json.key("layers").begin_array();
    for (const LayerInfo& layer : network.layers()) {
      json.begin_object().text("name", layer.name).text("kind", layer.kind).text("kernel", layer.kernel);
      json.whole("macs", layer.macs)
          .flag("binary", layer.binary)
          .whole("weightBytes", layer.weight_bytes)
          .end_object();
    }
    json.end_array().key("labels").begin_array();
    for (const std::string& label : network.labels()) json.text(label);
    json.end_array().key("detection").begin_array();
    for (const DetectionHead& head : network.detection()) {
      json.begin_object().whole("output", head.output).key("anchors").begin_array();
      for (const Anchor& anchor : head.anchors)
        json.begin_array().real(double{anchor.width}).real(double{anchor.height}).end_array();
      json.end_array().end_object();
    }
    json.end_array();
    const MemoryInfo memory = network.memory();
    json.key("memory").begin_object().whole("arena", static_cast<int64_t>(memory.arena_bytes));
    json.whole("scratch", static_cast<int64_t>(memory.scratch_bytes));
    json.whole("weights", static_cast<int64_t>(memory.weight_bytes));
    json.whole("file", static_cast<int64_t>(memory.file_bytes)).end_object().end_object();
    own->text = json.document();
    return own->text.c_str();
  });
}

/// Memory for `bytes` bytes of input `index`, until the next call of this one for it.
EMSCRIPTEN_KEEPALIVE void* phonebit_web_input(PhoneBitWebNetwork* own, int index, size_t bytes) {
  return guarded<void*>(nullptr, [&]() -> void* {
    Bytes& input = own->inputs.at(static_cast<size_t>(index));
    input.resize(bytes);
    return input.data();
  });
}

/// Memory for the levels of an RGBA image.
EMSCRIPTEN_KEEPALIVE void* phonebit_web_image(PhoneBitWebNetwork* own, int width, int height) {
  return guarded<void*>(nullptr, [&]() -> void* {
    if (width < 1 || height < 1 || width > images::kMaxSide || height > images::kMaxSide)
      fail(ErrorCode::input, "image: got %dx%d pixels, expected 1 to %d on each side", width, height,
           images::kMaxSide);
    own->image.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 4);
    return own->image.data();
  });
}

/// Makes input `index` of that image as the file says, and returns where the image lies in it, as JSON.
EMSCRIPTEN_KEEPALIVE const char* phonebit_web_prepare(PhoneBitWebNetwork* own, int index, int width,
                                                      int height) {
  return guarded<const char*>(nullptr, [&] {
    const auto at = static_cast<size_t>(index);
    const TensorInfo& tensor = own->network.inputs().at(at);
    images::Image image;
    image.format = images::ImageFormat::rgba;
    image.width = width;
    image.height = height;
    image.planes[0] = own->image.data();
    const Preprocessing rule = images::rule_for(own->network.preprocessing(), tensor, at);
    Bytes& input = own->inputs[at];
    input.resize(tensor.bytes());
    const images::Placement place = images::prepare_image(image, rule, tensor, input.data(), input.size());
    JsonWriter json(JsonWriter::Layout::one_line);
    json.begin_object().whole("width", place.scaled.width).whole("height", place.scaled.height);
    json.whole("left", place.left).whole("top", place.top).end_object();
    own->text = json.document();
    return own->text.c_str();
  });
}

/// Runs `batch` images of the inputs; 1: it succeeded.
EMSCRIPTEN_KEEPALIVE int phonebit_web_forward(PhoneBitWebNetwork* own, int batch) {
  return guarded(0, [&] {
    const std::vector<TensorInfo>& outputs = own->network.outputs();
    std::vector<OutputBuffer> buffers;
    for (size_t i = 0; i < outputs.size(); ++i) {
      own->outputs[i].resize(outputs[i].bytes() * static_cast<size_t>(batch < 1 ? 1 : batch));
      buffers.push_back({own->outputs[i].data(), own->outputs[i].size()});
    }
    own->network.forward(own->input_buffers(), buffers, batch);
    return 1;
  });
}

/// Output `index` of the last run, and its bytes.
EMSCRIPTEN_KEEPALIVE const void* phonebit_web_output(const PhoneBitWebNetwork* own, int index) {
  return own->outputs[static_cast<size_t>(index)].data();
}
EMSCRIPTEN_KEEPALIVE size_t phonebit_web_output_bytes(const PhoneBitWebNetwork* own, int index) {
  return own->outputs[static_cast<size_t>(index)].size();
}

/// Milliseconds of each layer on the inputs of the last run, medians of `repeats`, as a JSON array.
EMSCRIPTEN_KEEPALIVE const char* phonebit_web_profile(PhoneBitWebNetwork* own, int batch, int repeats) {
  return guarded<const char*>(nullptr, [&] {
    JsonWriter json(JsonWriter::Layout::one_line);
    json.begin_array();
    for (const double ms : own->network.profile(own->input_buffers(), batch, repeats)) json.real(ms);
    json.end_array();
    own->text = json.document();
    return own->text.c_str();
  });
}

}  // extern "C"
