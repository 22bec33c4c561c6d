#include "vulkan/module_builder.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "types/fail.h"
#include "vulkan/spirv.h"

namespace phonebit::engine::vulkan {
namespace {

/// Takes a whole number from the beginning of `text`.
uint32_t take_number(std::string_view& text) {
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return static_cast<uint32_t>(number);
}

/// A number of a define, whole or a float, as the bits of a constant.
uint32_t bits_of(const std::string& text) {
  std::string_view whole = text;
  if (text.find('f') == std::string::npos && text.find("INF") == std::string::npos) return take_number(whole);
  const auto value = static_cast<float>(std::atof(text.c_str()));
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The arguments of "STEP_ADD(W, tensor0, 0, 1)" without the first; `text` moves on.
std::vector<std::string> take_arguments(std::string_view& text) {
  const size_t open = text.find('('), close = text.find(')');
  std::string_view inner = text.substr(open + 1, close - open - 1);
  std::vector<std::string> arguments;
  for (size_t comma = inner.find(", "); comma != std::string_view::npos;) {
    inner.remove_prefix(comma + 2);
    comma = inner.find(", ");
    arguments.emplace_back(inner.substr(0, comma));
  }
  text.remove_prefix(std::min(close + 2, text.size()));
  return arguments;
}

bool is_name(const std::string& argument) { return argument[0] >= 'a' && argument[0] <= 'z'; }

}  // namespace

std::vector<ModuleBuilder::Step> ModuleBuilder::steps() const {
  std::vector<Step> found;
  const std::string* const list = defines_.find("APPLY_STEPS(W)");
  for (std::string_view text = list == nullptr ? std::string_view() : std::string_view(*list);
       !text.empty();) {
    std::string name(text.substr(0, text.find('(')));
    Step step{0, {0, 0, 0}};
    size_t count = 0;
    for (const std::string& argument : take_arguments(text)) {
      if (is_name(argument))
        name += " " + argument;
      else if (count < 3)
        step.numbers[count++] = bits_of(argument);
    }
    const auto at = std::find(content_.steps.begin(), content_.steps.end(), name);
    if (at == content_.steps.end())
      throw gpu::BuildError(ErrorCode::device, "modules for Vulkan have no step " + name + " of an epilogue");
    step.place = static_cast<size_t>(at - content_.steps.begin());
    found.push_back(step);
  }
  return found;
}

void ModuleBuilder::use_words(const Instruction& instruction, size_t from) {
  for (size_t i = from; i < instruction.count; ++i) use(instruction.words[i]);
}

/// Words that are no ids of declarations or functions do nothing. Literals are below all ids.
void ModuleBuilder::use(uint32_t id) {
  const auto function = content_.function_of.find(id);
  const auto declared = content_.declaration_of.find(id);
  if (content_.decorations.count(id) > 0) decorated_.insert(id);
  if (function == content_.function_of.end() && declared == content_.declaration_of.end()) return;
  if (!used_.insert(id).second) return;
  if (function != content_.function_of.end()) {
    build_function(content_.functions[function->second].second);
    return;
  }
  const Instruction& instruction = content_.declarations[declared->second].second;
  const bool is_number =
      instruction.operation() == spirv::kConstant || instruction.operation() == spirv::kSpecConstant;
  if (is_number)
    use(instruction.words[1]);
  else
    use_words(instruction, 1);
}

void ModuleBuilder::build_function(const ModuleLibrary::Function& function) {
  if (function.is_list) {
    build_list(function);
    return;
  }
  std::vector<uint32_t> words;
  for (const Instruction& instruction : function.instructions) {
    use_words(instruction, 1);
    append(words, instruction);
  }
  functions_.insert(functions_.end(), words.begin(), words.end());
}

/// Of the calls in a list, those of the layer's steps, each with the result of the one before it.
void ModuleBuilder::build_list(const ModuleLibrary::Function& list) {
  std::vector<const Instruction*> calls;
  std::vector<uint32_t> words;
  uint32_t value = 0;
  for (const Instruction& instruction : list.instructions) {
    if (instruction.operation() == spirv::kCall) {
      calls.push_back(&instruction);
    } else if (instruction.operation() != spirv::kReturnValue &&
               instruction.operation() != spirv::kFunctionEnd) {
      if (value == 0 && instruction.operation() == spirv::kParameter &&
          instruction.words[1] == list.instructions[0].words[1])
        value = instruction.words[2];
      use_words(instruction, 1);
      append(words, instruction);
    }
  }
  const uint32_t parameter = value;
  std::map<uint32_t, size_t> number_of;  // ids of STEP_A, STEP_B, STEP_C
  for (const auto& [id, instructions] : content_.decorations)
    for (const Instruction& instruction : instructions)
      if (instruction.operation() == spirv::kDecorate && instruction.words[2] == spirv::kSpecId) {
        const std::string& name = content_.constants.at(instruction.words[3]);
        if (name.size() == 6 && name.compare(0, 5, "STEP_") == 0)
          number_of[id] = static_cast<size_t>(name[5] - 'A');
      }
  for (const Step& step : steps()) {
    std::vector<uint32_t> call;
    append(call, *calls.at(step.place));
    for (size_t i = 4; i < call.size(); ++i) {
      const auto number = number_of.find(call[i]);
      if (number != number_of.end())
        call[i] = constant(step.numbers[number->second]);
      else if (call[i] == parameter)
        call[i] = value;
    }
    value = call[2] = bound_++;
    use_words({call.data(), call.size()}, 1);
    words.insert(words.end(), call.begin(), call.end());
  }
  words.insert(words.end(), {2u << 16 | spirv::kReturnValue, value, 1u << 16 | spirv::kFunctionEnd});
  functions_.insert(functions_.end(), words.begin(), words.end());
}

uint32_t ModuleBuilder::constant(uint32_t value) {
  if (uint_ == 0) {
    for (const auto& [id, instruction] : content_.declarations)
      if (instruction.operation() == spirv::kSpecConstant) uint_ = instruction.words[1];
    use(uint_);
  }
  const auto [at, is_new] = constants_.emplace(value, bound_);
  if (is_new) ++bound_;
  return at->second;
}

uint32_t ModuleBuilder::declared_number(uint32_t id) const {
  return content_.declarations[content_.declaration_of.at(id)].second.words[3];
}

std::set<uint32_t> ModuleBuilder::used_bindings() const {
  std::set<uint32_t> bindings;
  for (const uint32_t id : used_) {
    const auto found = content_.decorations.find(id);
    if (found == content_.decorations.end()) continue;
    for (const Instruction& instruction : found->second)
      if (instruction.operation() == spirv::kDecorate && instruction.words[2] == spirv::kBinding)
        bindings.insert(instruction.words[3]);
  }
  return bindings;
}

/// What is said about the kernel, but of buffers that it does not use.
void ModuleBuilder::build_about() {
  const std::set<uint32_t> bindings = used_bindings();
  uint32_t kernel = 0;
  for (const Instruction& instruction : content_.about) {
    const uint32_t what = instruction.words[4], about = instruction.words[5];
    if (what == spirv::kKernel && about == entry_.point.words[2]) {
      kernel = instruction.words[2];
      for (const Instruction& string : content_.strings)
        if (string.words[1] == instruction.words[6]) append(strings_, string);
    } else if (kernel == 0 || about != kernel) {
      continue;
    }
    if (what == spirv::kStorageBuffer && bindings.count(declared_number(instruction.words[8])) == 0) continue;
    use_words(instruction, 1);
    append(about_, instruction);
  }
}

void ModuleBuilder::append_declarations(std::vector<uint32_t>& to) const {
  for (const auto& [id, instruction] : content_.declarations) {
    if (used_.count(id) == 0) continue;
    const size_t begin = to.size();
    append(to, instruction);
    if (instruction.operation() != spirv::kSpecConstant) continue;
    uint32_t value = 0;
    for (const Instruction& decoration : content_.decorations.at(id))
      if (decoration.words[2] == spirv::kSpecId) {
        const std::string* const text = defines_.find(content_.constants.at(decoration.words[3]));
        if (text != nullptr) value = bits_of(*text);
      }
    to[begin] = 4u << 16 | spirv::kConstant;
    to[begin + 3] = value;
  }
  for (const auto& [value, id] : constants_)
    to.insert(to.end(), {4u << 16 | spirv::kConstant, uint_, id, value});
}

void ModuleBuilder::append_decorations(std::vector<uint32_t>& to) const {
  for (const uint32_t id : decorated_)
    for (const Instruction& instruction : content_.decorations.at(id))
      if (instruction.operation() != spirv::kDecorate || instruction.words[2] != spirv::kSpecId)
        append(to, instruction);
}

std::string ModuleBuilder::module() {
  use(entry_.point.words[2]);
  use_words(entry_.point, 3 + entry_.name.size() / sizeof(uint32_t) + 1);  // variables
  build_about();
  std::vector<uint32_t> all(content_.words.begin(), content_.words.begin() + spirv::kHeaderWords);
  std::string_view capabilities = std::string_view(entry_.name).substr(entry_.name.find(" :") + 2);
  while (!capabilities.empty()) {
    capabilities.remove_prefix(1);  // a blank
    all.insert(all.end(), {2u << 16 | spirv::kCapability, take_number(capabilities)});
  }
  for (const auto& instruction : content_.extensions) append(all, instruction);
  for (const auto& instruction : content_.imports) append(all, instruction);
  append(all, content_.memory_model);
  append(all, entry_.point);
  for (const auto& instruction : content_.modes)
    if (instruction.words[1] == entry_.point.words[2]) append(all, instruction);
  all.insert(all.end(), strings_.begin(), strings_.end());
  append_decorations(all);
  append_declarations(all);
  all.insert(all.end(), functions_.begin(), functions_.end());
  all.insert(all.end(), about_.begin(), about_.end());
  all[3] = bound_;
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(uint32_t)};
}

}  // namespace phonebit::engine::vulkan
