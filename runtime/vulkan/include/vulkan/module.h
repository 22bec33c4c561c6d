// A kernel as SPIR-V: its words, and where its arguments go.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace phonebit::engine::vulkan {

/// What clspv says about a kernel in instructions that have no meaning for a driver
/// (NonSemantic.ClspvReflection), without these.
struct Module {
  struct Argument {
    enum class Kind { unused, buffer, number } kind = Kind::unused;
    uint32_t place = 0;  ///< binding in descriptor set 0, or byte among the push constants
  };

  std::vector<uint32_t> words;
  std::string kernel;                        ///< name of the entry point
  std::vector<Argument> arguments;           ///< by position
  uint32_t bindings = 0, push_bytes = 0;     ///< one more than the last place
  std::array<uint32_t, 3> group_size{};      ///< fixed; 0: set when the pipeline is made
  std::array<uint32_t, 3> group_size_ids{};  ///< of the specialisation constants that set it
};

/// Throws Error(device) naming what is wrong with the words, or what the engine has not.
Module read_module(const std::string& binary);

}  // namespace phonebit::engine::vulkan
