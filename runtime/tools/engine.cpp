#include "engine.h"

#include <cstdio>
#include <cstring>
#include <random>
#include <sstream>

#include "printable.h"

namespace phonebit::tools {
namespace {

constexpr int max_threads = 1024;
constexpr int max_processors = 4096;

/// "big", "little", "any", or the system's numbers "4,5,6,7".
void set_cores(Options& options, const std::string& text) {
  if (text == "any" || text == "big" || text == "little") {
    options.cores(text == "big" ? Cores::big : text == "little" ? Cores::little : Cores::any);
    return;
  }
  std::vector<int32_t> numbers;
  std::istringstream stream(text);
  std::string number;
  while (std::getline(stream, number, ','))
    numbers.push_back(
        parse_number("--cores (big, little, any, or numbers as 0,1)", number, 0, max_processors));
  options.core_list(std::move(numbers));
}

void fill_random(Bytes& memory, Type type, std::mt19937& random) {
  if (type != Type::f32) {
    for (uint8_t& level : memory) level = static_cast<uint8_t>(random());
    return;
  }
  for (size_t place = 0; place < memory.size(); place += sizeof(float)) {
    const float value = static_cast<float>(random()) / 2147483648.0f - 1.0f;
    std::memcpy(&memory[place], &value, sizeof value);
  }
}

}  // namespace

const std::vector<std::string> precision_names = {"exact", "f16", "fast"};

std::vector<OptionRule> with_engine_rules(const std::vector<OptionRule>& own) {
  std::vector<OptionRule> rules = {
      {"--device", "DEVICE", "auto, cpu, cpu:neon, gpu, gpu:1, gpu+cpu (default auto)"},
      {"--threads", "N", "CPU threads; 0: one for each processor that may be used (default)"},
      {"--cores", "CORES", "processors for them: big, little, any, or numbers as 4,5,6,7 (default any)"},
      {"--hint", "HINT", "none, performance or power (default none)"},
      {"--precision", "P", "exact, f16 or fast (default exact)"},
      {"--cache", "DIR", "folder for GPU programs and self-test results"},
  };
  rules.insert(rules.end(), own.begin(), own.end());
  return rules;
}

Options engine_options(const Arguments& arguments) {
  Options options;
  options.device(arguments.text("--device").value_or("auto"));
  options.threads(arguments.number("--threads", 0, 0, max_threads));
  set_cores(options, arguments.text("--cores").value_or("any"));
  constexpr Hint hints[] = {Hint::none, Hint::performance, Hint::power};
  options.hint(hints[arguments.choice("--hint", {"none", "performance", "power"})]);
  constexpr Precision precisions[] = {Precision::exact, Precision::f16, Precision::fast};
  options.precision(precisions[arguments.choice("--precision", precision_names)]);
  if (const auto folder = arguments.text("--cache")) options.cache_directory(*folder);
  return options;
}

Network load_network(const Arguments& arguments, const Options& options) {
  const std::vector<std::string>& files = arguments.files();
  if (files.size() != 1) fail("expected one FILE (.pbit), got %zu; --help tells more", files.size());
  return checked(Network::load(files[0], options));
}

const char* type_name(Type type) { return type == Type::bit ? "bit" : type == Type::u8 ? "u8" : "f32"; }

std::vector<Bytes> tensor_memory(const std::vector<TensorInfo>& tensors, int batch) {
  std::vector<Bytes> memory;
  for (const TensorInfo& tensor : tensors) memory.emplace_back(tensor.bytes * static_cast<size_t>(batch));
  return memory;
}

std::vector<Input> as_inputs(const std::vector<Bytes>& memory) {
  std::vector<Input> spans;
  for (const Bytes& bytes : memory) spans.emplace_back(bytes.data(), bytes.size());
  return spans;
}

std::vector<Output> as_outputs(std::vector<Bytes>& memory) {
  std::vector<Output> spans;
  for (Bytes& bytes : memory) spans.emplace_back(bytes.data(), bytes.size());
  return spans;
}

std::vector<Bytes> random_inputs(const std::vector<TensorInfo>& tensors, int batch) {
  std::mt19937 random(0);
  std::vector<Bytes> inputs = tensor_memory(tensors, batch);
  for (size_t i = 0; i < tensors.size(); ++i) fill_random(inputs[i], tensors[i].type, random);
  return inputs;
}

void print_warnings(const char* program, const Network& network) {
  for (const std::string& warning : network.warnings())
    std::fprintf(stderr, "%s: warning: %s\n", program, printable_lines(warning).c_str());
}

}  // namespace phonebit::tools
