// The kernels as SPIR-V that the library itself has: drivers of Vulkan have no compiler for their text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"

namespace phonebit::engine::vulkan {

/// One module with all kernels as its entry points (packaging/vulkan), in which what layers decide is open: geometry
/// and flags are specialisation constants, and a list of steps has a call of each step that there is. A layer's module
/// has one entry point, only what this uses, its constants' values, and its steps.
class ModuleLibrary {
 public:
  /// Reads the embedded one. Throws Error(internal) where it is damaged.
  ModuleLibrary();

  /// Whether there is a module of a kernel with these tunables. Words that are loaded at once do not count: a layer
  /// has as many as fit into its pixels.
  bool has(const gpu::KernelChoice& choice) const;

  /// SPIR-V for a program's text, by the `#define` lines at its beginning. Throws a gpu::BuildError where no module is
  /// for these.
  std::string program(const gpu::ProgramSource& source) const;

  /// One instruction: its words, the first of which is operation and length.
  struct Instruction {
    const uint32_t* words;
    size_t count;
    uint32_t operation() const { return words[0] & 0xFFFF; }
  };
  struct Function {
    std::vector<Instruction> instructions;
    bool is_list = false;  ///< of steps
  };
  struct Entry {
    std::string name;  ///< "bgemv TILE_FILTERS=1 ... : 1 22", the numbers being capabilities
    Instruction point;
  };
  struct Content {
    std::vector<std::string> constants, steps;  ///< names of specialisation constants, of steps in a list
    std::vector<uint32_t> words;                ///< of the module; instructions point here
    std::vector<Instruction> extensions, imports, modes, strings, about;
    Instruction memory_model;
    std::vector<Entry> entries;
    std::map<uint32_t, std::vector<Instruction>> decorations;  ///< by target
    std::vector<std::pair<uint32_t, Instruction>> declarations;
    std::map<uint32_t, size_t> declaration_of;  ///< id to place in `declarations`
    std::vector<std::pair<uint32_t, Function>> functions;
    std::map<uint32_t, size_t> function_of;
  };

 private:
  void read(const std::string& text);

  Content content_;
};

/// Read once.
const ModuleLibrary& module_library();

/// What a generated source defines: the size of what follows as four bytes, then that as a raw DEFLATE stream: a line
/// with the constants' names, one with the steps', and the module.
extern const uint8_t embedded_modules[];
extern const size_t embedded_modules_size;

}  // namespace phonebit::engine::vulkan
