// phonebit_run: runs a network once on tensors or an image, for adb shell. docs/android.md shows it at work.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>

#include "engine.h"
#include "image_files.h"
#include "printable.h"
#include "tensor_files.h"

namespace phonebit::tools {
namespace {

constexpr const char* usage =
    "Runs a network once.\n\n"
    "  phonebit_run FILE --picture cat.ppm          an image (binary PPM or PGM): its classes\n"
    "  phonebit_run FILE --picture f.nv21 --size 640x480   a raw NV21 camera frame\n"
    "  phonebit_run FILE --input x.bin --output y.bin      raw tensors, as they lie in memory\n"
    "  phonebit_run FILE --input x.bin --check y.bin       compares every bit\n\n"
    "A raw file holds any number of images, one after the other. NAME= may be left out where there is one\n"
    "tensor. phonebit_bench measures time.\n\n"
    "Exit code 0: done; 1: --check found a difference; 2: wrong usage, or it could not be done.\n\n";

const std::vector<OptionRule> own_rules = {
    {"--input", "[NAME=]FILE", "a raw input; one per input of the network", true},
    {"--picture", "FILE", "an image as the only input"},
    {"--size", "WxH", "size of an .nv21 frame"},
    {"--output", "[NAME=]FILE", "write an output", true},
    {"--check", "[NAME=]FILE", "compare an output bit for bit with a file", true},
    {"--top", "N", "classes to show (default 5)"},
    {"--json", nullptr, "print one JSON document"},
    {"--help", nullptr, "this text"},
};

constexpr int max_classes = 1000000;

/// A network with one batch in its inputs.
struct Loaded {
  Network network;
  int batch;
  std::vector<Bytes> inputs, outputs;
};

/// The raw files of --input, in the order of the network's inputs.
std::vector<Bytes> read_inputs(const Arguments& arguments, const Network& network, int& batch) {
  const std::vector<TensorInfo> tensors = network.inputs();
  std::vector<Bytes> inputs(tensors.size());
  batch = 0;
  for (const std::string& text : arguments.all("--input")) {
    const NamedFile file = parse_named_file("--input", text, tensors);
    const TensorInfo& tensor = tensors[file.tensor];
    if (!inputs[file.tensor].empty()) fail("--input: '%s' is given twice", tensor.name.c_str());
    inputs[file.tensor] = read_bytes(file.path);
    const int images = images_in(file.path, inputs[file.tensor].size(), tensor);
    if (batch != 0 && images != batch)
      fail("%s: %d images of %s, expected %d as in the other inputs", file.path.c_str(), images,
           tensor.name.c_str(), batch);
    batch = images;
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    if (inputs[i].empty())
      fail("input '%s' is missing: give --input %s=FILE, or --picture FILE", describe(tensors[i]).c_str(),
           tensors[i].name.c_str());
  return inputs;
}

ImageFile read_image(const Arguments& arguments) {
  const std::string path = *arguments.text("--picture");
  const std::string ending = ".nv21";
  const bool is_frame =
      path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
  const auto size = arguments.text("--size");
  if (!is_frame) {
    if (size) fail("--size is for .nv21 frames; %s tells its size itself", path.c_str());
    return read_netpbm(path);
  }
  if (!size) fail("%s: --size WxH is missing, as --size 640x480", path.c_str());
  return read_nv21(path, parse_size("--size", *size));
}

/// What an image becomes where the file does not tell: its levels, stretched to the input's size.
Preprocessing plain_levels(const TensorInfo& input) {
  Preprocessing rule;
  rule.color_order = input.channels == 1   ? ColorOrder::gray
                     : input.channels == 3 ? ColorOrder::rgb
                     : input.channels == 4 ? ColorOrder::rgba
                                           : ColorOrder::none;
  rule.high = 255.0;
  return rule;
}

/// One image of the network's only input.
std::vector<Bytes> prepare_image(const Arguments& arguments, const Network& network) {
  const std::vector<TensorInfo> tensors = network.inputs();
  if (tensors.size() != 1) fail("--picture: the network has %zu inputs, expected one", tensors.size());
  if (arguments.has("--input")) fail("--picture and --input exclude each other");
  const ImageFile file = read_image(arguments);
  constexpr ImageFormat formats[] = {ImageFormat::gray, ImageFormat::rgb, ImageFormat::nv21};
  Image source;
  source.format = formats[static_cast<size_t>(file.layout)];
  source.width = file.width;
  source.height = file.height;
  source.planes[0] = file.bytes.data() + file.first;
  if (file.layout == PixelLayout::nv21)
    source.planes[1] = source.planes[0] + static_cast<size_t>(file.width) * static_cast<size_t>(file.height);
  std::vector<Bytes> image = tensor_memory(tensors, 1);
  const bool has_rule = checked(network.preprocessing()).color_order != ColorOrder::none;
  // Real numbers could stand for anything; what they stand for is not guessed.
  const bool is_plain = !has_rule && tensors[0].type == Type::u8;
  const Preprocessing rule = plain_levels(tensors[0]);
  checked(network.prepare_image(source, Output(image[0]), 0, is_plain ? &rule : nullptr));
  return image;
}

Loaded load(const Arguments& arguments) {
  Network network = load_network(arguments, engine_options(arguments));
  int batch = 1;
  if (!arguments.has("--picture")) arguments.refuse_with("no --picture", {"--size"});
  std::vector<Bytes> inputs =
      arguments.has("--picture") ? prepare_image(arguments, network) : read_inputs(arguments, network, batch);
  std::vector<Bytes> outputs = tensor_memory(network.outputs(), batch);
  return {std::move(network), batch, std::move(inputs), std::move(outputs)};
}

/// An output that was compared.
struct Check {
  std::string output, difference;
};

std::vector<Check> check_outputs(const Arguments& arguments, const Loaded& loaded) {
  const std::vector<TensorInfo> tensors = loaded.network.outputs();
  std::vector<Check> checks;
  for (const std::string& text : arguments.all("--check")) {
    const NamedFile file = parse_named_file("--check", text, tensors);
    const TensorInfo& tensor = tensors[file.tensor];
    const Bytes expected = read_bytes(file.path);
    checks.push_back({tensor.name, first_difference(tensor, loaded.outputs[file.tensor], expected)});
  }
  return checks;
}

void write_outputs(const Arguments& arguments, const Loaded& loaded) {
  for (const std::string& text : arguments.all("--output")) {
    const NamedFile file = parse_named_file("--output", text, loaded.network.outputs());
    const Bytes& content = loaded.outputs[file.tensor];
    write_bytes(file.path, content.data(), content.size());
  }
}

/// One class with what the network thinks of it.
struct Guess {
  int index;
  std::string label;
  float score;
  double probability;
};

/// Whether the first output is one vector of class scores: real-valued, without a map.
bool is_classifier(const Network& network) {
  const TensorInfo output = network.outputs()[0];
  return output.type == Type::f32 && output.height == 1 && output.width == 1;
}

/// The best classes of one image, best first.
///
/// `scores` are its numbers in the first output; `top` is the most that are given.
std::vector<Guess> best_classes(const Network& network, const float* scores, int top) {
  const auto count = static_cast<size_t>(network.outputs()[0].channels);
  const std::vector<std::string> labels = network.labels();
  // Scores are probabilities already, or softmax makes them such: exp(s_i) / sum_j exp(s_j), the maximum
  // taken off first.
  const bool is_softmax = network.layers().back().kind == "softmax";
  const double largest = *std::max_element(scores, scores + count);
  std::vector<double> powers(scores, scores + count);
  if (!is_softmax)
    for (double& power : powers) power = std::exp(power - largest);
  const double total = is_softmax ? 1.0 : std::accumulate(powers.begin(), powers.end(), 0.0);

  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(count, static_cast<size_t>(top)));
  std::vector<Guess> guesses;
  for (size_t i : order) {
    const std::string label = i < labels.size() ? labels[i] : "class " + std::to_string(i);
    guesses.push_back({static_cast<int>(i), label, scores[i], powers[i] / total});
  }
  return guesses;
}

/// The best classes of each image; none of networks that are no classifiers.
std::vector<std::vector<Guess>> classify(const Loaded& loaded, int top) {
  std::vector<std::vector<Guess>> images;
  if (!is_classifier(loaded.network)) return images;
  const size_t image_bytes = loaded.network.outputs()[0].bytes;
  std::vector<float> scores(image_bytes / sizeof(float));
  for (size_t image = 0; image < static_cast<size_t>(loaded.batch); ++image) {
    std::memcpy(scores.data(), &loaded.outputs[0][image * image_bytes], image_bytes);
    images.push_back(best_classes(loaded.network, scores.data(), top));
  }
  return images;
}

void write_tensors(JsonWriter& json, const char* name, const std::vector<TensorInfo>& tensors) {
  json.key(name).begin_array();
  for (const TensorInfo& tensor : tensors) {
    json.begin_object().text("name", tensor.name).text("dtype", type_name(tensor.type));
    json.key("shape")
        .begin_array()
        .whole(tensor.height)
        .whole(tensor.width)
        .whole(tensor.channels)
        .end_array();
    json.end_object();
  }
  json.end_array();
}

void print_json(const Arguments& arguments, const Loaded& loaded,
                const std::vector<std::vector<Guess>>& images, const std::vector<Check>& checks) {
  JsonWriter json;
  json.begin_object().text("file", arguments.files()[0]).text("device", loaded.network.device());
  json.whole("threads", loaded.network.threads()).whole("batch", loaded.batch);
  write_tensors(json, "inputs", loaded.network.inputs());
  write_tensors(json, "outputs", loaded.network.outputs());
  json.key("results").begin_array();
  for (const std::vector<Guess>& guesses : images) {
    json.begin_object().key("top").begin_array();
    for (const Guess& guess : guesses) {
      json.begin_object().whole("index", guess.index).text("label", guess.label);
      json.real("score", guess.score).real("probability", guess.probability).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("checks").begin_array();
  for (const Check& check : checks) {
    json.begin_object().text("output", check.output).flag("equal", check.difference.empty());
    json.text("difference", check.difference).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.document().c_str());
}

void print_text(const Loaded& loaded, const std::vector<std::vector<Guess>>& images,
                const std::vector<Check>& checks) {
  std::printf("%s, %d threads\n", loaded.network.device().c_str(), loaded.network.threads());
  for (const TensorInfo& output : loaded.network.outputs())
    std::printf("output %s, %d images\n", printable(describe(output)).c_str(), loaded.batch);
  for (size_t image = 0; image < images.size(); ++image) {
    if (images.size() > 1) std::printf("image %zu\n", image);
    for (const Guess& guess : images[image])
      std::printf("  %6.2f %%  %s\n", 100.0 * guess.probability, printable(guess.label).c_str());
  }
  for (const Check& check : checks) {
    const bool is_equal = check.difference.empty();
    const std::string outcome = is_equal ? check.output + ": every bit is equal" : check.difference;
    std::printf("%s\n", printable(outcome).c_str());
  }
}

int run(int argc, const char* const* argv) {
  const std::vector<OptionRule> rules = with_engine_rules(own_rules);
  const Arguments arguments(rules, argc, argv);
  if (arguments.has("--help")) {
    std::fputs(help_text(usage, rules).c_str(), stdout);
    return exit_ok;
  }
  const int top = arguments.number("--top", 5, 1, max_classes);
  Loaded loaded = load(arguments);
  checked(loaded.network.forward(as_inputs(loaded.inputs), as_outputs(loaded.outputs), loaded.batch));
  print_warnings("phonebit_run", loaded.network);
  write_outputs(arguments, loaded);
  const std::vector<std::vector<Guess>> images = classify(loaded, top);
  const std::vector<Check> checks = check_outputs(arguments, loaded);
  if (arguments.has("--json"))
    print_json(arguments, loaded, images, checks);
  else
    print_text(loaded, images, checks);
  for (const Check& check : checks)
    if (!check.difference.empty()) return exit_mismatch;
  return exit_ok;
}

}  // namespace
}  // namespace phonebit::tools

int main(int argc, char** argv) {
  try {
    return phonebit::tools::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "phonebit_run: %s\n", phonebit::tools::printable_lines(error.what()).c_str());
    return phonebit::tools::exit_failed;
  }
}
