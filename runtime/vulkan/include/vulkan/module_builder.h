// A layer's module, out of the one that has all kernels.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/kernel_library.h"
#include "vulkan/module_library.h"

namespace phonebit::engine::vulkan {

class ModuleBuilder {
 public:
  using Instruction = ModuleLibrary::Instruction;

  ModuleBuilder(const ModuleLibrary::Content& content, const ModuleLibrary::Entry& entry,
                const gpu::Defines& defines)
      : content_(content), entry_(entry), defines_(defines), bound_(content.words[3]) {}

  /// Throws a gpu::BuildError where a list of steps has no such step.
  std::string module();

 private:
  /// A step of the layer: the place of its call in a list, and its numbers.
  struct Step {
    size_t place;
    uint32_t numbers[3];
  };

  std::vector<Step> steps() const;
  void use(uint32_t id);
  void use_words(const Instruction& instruction, size_t from);
  void build_function(const ModuleLibrary::Function& function);
  void build_list(const ModuleLibrary::Function& list);
  uint32_t constant(uint32_t value);
  void build_about();
  std::set<uint32_t> used_bindings() const;
  uint32_t declared_number(uint32_t id) const;
  void append(std::vector<uint32_t>& to, const Instruction& instruction) const {
    to.insert(to.end(), instruction.words, instruction.words + instruction.count);
  }
  void append_declarations(std::vector<uint32_t>& to) const;
  void append_decorations(std::vector<uint32_t>& to) const;

  const ModuleLibrary::Content& content_;
  const ModuleLibrary::Entry& entry_;
  const gpu::Defines& defines_;
  uint32_t bound_;
  std::set<uint32_t> used_;                 ///< declarations and functions
  std::set<uint32_t> decorated_;            ///< what is in the module and has decorations
  std::map<uint32_t, uint32_t> constants_;  ///< value to id: numbers of steps
  uint32_t uint_ = 0;                       ///< the type
  std::vector<uint32_t> functions_, about_, strings_;
};

}  // namespace phonebit::engine::vulkan
