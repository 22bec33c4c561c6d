#include "vulkan/module_library.h"

#include <algorithm>
#include <cstring>

#include "format/inflate.h"
#include "types/fail.h"
#include "vulkan/module_builder.h"
#include "vulkan/spirv.h"

namespace phonebit::engine::vulkan {
namespace {

std::vector<std::string> fields_of(std::string_view line, char separator) {
  std::vector<std::string> fields;
  while (!line.empty()) {
    const size_t end = std::min(line.find(separator), line.size());
    fields.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

std::string text_of(const uint32_t* words, size_t count) {
  const char* const characters = reinterpret_cast<const char*>(words);
  return {characters, std::find(characters, characters + count * sizeof(uint32_t), '\0')};
}

/// The `#define` lines at the beginning of a program.
gpu::Defines defines_of(std::string_view text) {
  constexpr std::string_view kDefine = "#define ";
  gpu::Defines defines;
  while (text.substr(0, kDefine.size()) == kDefine) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(kDefine.size(), end - kDefine.size());
    const size_t blank = std::min(line.find(' '), line.size());
    defines.set(std::string(line.substr(0, blank)).c_str(),
                std::string(line.substr(std::min(blank + 1, line.size()))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // At most so many words per load; pixels are whole numbers of them (common/words.clh).
  const std::string *const words = defines.find("VECTOR_WORDS"), *const pixel = defines.find("IN_WORDS");
  if (words != nullptr && pixel != nullptr) {
    int vector_words = std::stoi(*words);
    while (vector_words > 1 && std::stoi(*pixel) % vector_words != 0) vector_words /= 2;
    defines.set("VECTOR_WORDS", vector_words);
  }
  return defines;
}

/// Undoes what packaging/vulkan/merge.py does: a function's own ids are distances from the next one.
void restore_ids(std::vector<uint32_t>& words) {
  uint32_t first = 0, next = 0;  // ids of the function
  for (size_t i = spirv::kHeaderWords; i < words.size();) {
    const size_t begin = i, end = std::min<size_t>(i + std::max(words[i] >> 16, 1u), words.size());
    const bool is_first = (words[i] & 0xFFFF) == spirv::kFunction && begin + 2 < words.size();
    if (is_first) first = words[begin + 2], next = first + 1;
    for (++i; i < end; ++i) {
      if (next == 0 || words[i] < first || words[i] >> 31 != 0 || (is_first && i == begin + 2)) continue;
      const uint32_t coded = words[i] - first;
      words[i] = coded % 2 == 0 ? next - coded / 2 : next + (coded + 1) / 2;
      if (words[i] == next) ++next;
    }
  }
}

/// Kernel and values of an entry point.
std::vector<std::string> choice_of(const std::string& name) {
  return fields_of(std::string_view(name).substr(0, name.find(" :")), ' ');
}

/// Whether an entry point is of a kernel with these values.
bool fits(const std::string& name, const std::string& kernel, const gpu::Defines& defines) {
  const std::vector<std::string> fields = choice_of(name);
  if (fields[0] != kernel) return false;
  return std::all_of(fields.begin() + 1, fields.end(), [&](const std::string& field) {
    const size_t sign = field.find('=');
    const std::string* const value = defines.find(field.substr(0, sign));
    return value != nullptr && *value == field.substr(sign + 1);
  });
}

}  // namespace

ModuleLibrary::ModuleLibrary() {
  uint32_t size = 0;
  std::memcpy(&size, embedded_modules, sizeof size);
  read(format::inflate(embedded_modules + sizeof size, embedded_modules_size - sizeof size, size));
}

void ModuleLibrary::read(const std::string& text) {
  const size_t first = text.find('\n'), second = text.find('\n', first + 1);
  if (second == std::string::npos || (text.size() - second - 1) % sizeof(uint32_t) != 0)
    fail(ErrorCode::internal, "embedded modules of Vulkan: damaged; build PhoneBit again");
  content_.constants = fields_of(std::string_view(text).substr(0, first), ' ');
  content_.steps = fields_of(std::string_view(text).substr(first + 1, second - first - 1), ',');
  std::vector<uint32_t>& words = content_.words;
  words.resize((text.size() - second - 1) / sizeof(uint32_t));
  std::memcpy(words.data(), text.data() + second + 1, text.size() - second - 1);
  restore_ids(words);
  Function function;
  std::vector<uint32_t> lists;
  for (size_t i = spirv::kHeaderWords; i < words.size();) {
    const Instruction read{&words[i], words[i] >> 16};
    if (read.count == 0 || read.count > words.size() - i)
      fail(ErrorCode::internal, "embedded modules of Vulkan: an instruction has a wrong length");
    i += read.count;
    const uint32_t operation = read.operation();
    const uint32_t* const operands = read.words + 1;
    // Where functions must not become a part of their callers, NVIDIA's compiler takes minutes over conv2d_f32, else 3 s.
    if (operation == spirv::kFunction) words[i - read.count + 3] &= ~spirv::kDontInline;
    if (operation == spirv::kFunction || !function.instructions.empty()) {
      function.instructions.push_back(read);
      if (operation != spirv::kFunctionEnd) continue;
      const uint32_t id = function.instructions[0].words[2];
      function.is_list = std::find(lists.begin(), lists.end(), id) != lists.end();
      content_.function_of[id] = content_.functions.size();
      content_.functions.emplace_back(id, std::move(function));
      function = {};
    } else if (operation == spirv::kExtension) {
      content_.extensions.push_back(read);
    } else if (operation == spirv::kImport) {
      content_.imports.push_back(read);
    } else if (operation == spirv::kMemoryModel) {
      content_.memory_model = read;
    } else if (operation == spirv::kEntryPoint) {
      content_.entries.push_back({text_of(operands + 2, read.count - 3), read});
    } else if (operation == spirv::kExecutionMode) {
      content_.modes.push_back(read);
    } else if (operation == spirv::kString) {
      content_.strings.push_back(read);
    } else if (operation == spirv::kName) {
      lists.push_back(operands[0]);
    } else if (operation == spirv::kDecorate || operation == spirv::kMemberDecorate) {
      content_.decorations[operands[0]].push_back(read);
    } else if (operation == spirv::kInstruction) {
      content_.about.push_back(read);
    } else if (operation != spirv::kCapability) {
      const uint32_t id = operands[spirv::is_type(operation) ? 0 : 1];
      content_.declaration_of[id] = content_.declarations.size();
      content_.declarations.emplace_back(id, read);
    }
  }
}

bool ModuleLibrary::has(const gpu::KernelChoice& choice) const {
  return std::any_of(content_.entries.begin(), content_.entries.end(), [&](const Entry& entry) {
    const std::vector<std::string> fields = choice_of(entry.name);
    if (fields[0] != choice.kernel) return false;
    const std::vector<gpu::Tunable>& all = gpu::tunables(choice.kernel);
    return std::all_of(all.begin(), all.end(), [&](const gpu::Tunable& tunable) {
      if (tunable.name == "VECTOR_WORDS") return true;
      const std::string wanted = tunable.name + "=" + std::to_string(choice.parameter(tunable.name.c_str()));
      const std::string of_tunable = tunable.name + "=";
      return std::none_of(fields.begin() + 1, fields.end(), [&](const std::string& field) {
        return field.compare(0, of_tunable.size(), of_tunable) == 0 && field != wanted;
      });
    });
  });
}

std::string ModuleLibrary::program(const gpu::ProgramSource& source) const {
  const gpu::Defines defines = defines_of(source.text);
  for (const Entry& entry : content_.entries) {
    if (fits(entry.name, source.kernel, defines)) return ModuleBuilder(content_, entry, defines).module();
  }
  std::string tunables;
  for (const gpu::Tunable& tunable : gpu::tunables(source.kernel)) {
    const std::string* const value = defines.find(tunable.name);
    if (value != nullptr) tunables += " " + tunable.name + "=" + *value;
  }
  throw gpu::BuildError(ErrorCode::device,
                        "the library has no module for Vulkan of kernel " + source.kernel + tunables);
}

const ModuleLibrary& module_library() {
  static const ModuleLibrary instance;
  return instance;
}

}  // namespace phonebit::engine::vulkan
