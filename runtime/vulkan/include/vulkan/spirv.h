// Numbers of SPIR-V, as far as modules are read and written here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::vulkan::spirv {

constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;  // magic, version, generator, bound, schema

enum Operation : uint32_t {
  kName = 5,
  kString = 7,
  kExtension = 10,
  kImport = 11,
  kInstruction = 12,
  kMemoryModel = 14,
  kEntryPoint = 15,
  kExecutionMode = 16,
  kCapability = 17,
  kConstant = 43,
  kSpecConstant = 50,
  kFunction = 54,
  kParameter = 55,
  kFunctionEnd = 56,
  kCall = 57,
  kDecorate = 71,
  kMemberDecorate = 72,
  kReturnValue = 254,
};
constexpr uint32_t kDontInline = 2;  // of a function
enum Decoration : uint32_t { kSpecId = 1, kBinding = 33 };

/// Numbers of NonSemantic.ClspvReflection.
enum Reflection : uint32_t {
  kKernel = 1,
  kArgumentInfo = 2,
  kStorageBuffer = 3,
  kPushConstant = 7,
  kGroupSizeConstants = 12,
  kFixedGroupSize = 24,
  kLocalBytes = 42,
};

/// Whether an operation declares a type.
constexpr bool is_type(uint32_t operation) { return operation >= 19 && operation < 40; }

}  // namespace phonebit::engine::vulkan::spirv
