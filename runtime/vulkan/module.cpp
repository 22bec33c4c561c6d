#include "vulkan/module.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "types/fail.h"
#include "vulkan/spirv.h"

namespace phonebit::engine::vulkan {
namespace {

using namespace spirv;

/// One instruction's words after the first.
struct Words {
  const uint32_t* begin;
  size_t count;

  uint32_t at(size_t i) const {
    if (i >= count) fail(ErrorCode::device, "SPIR-V: an instruction is too short");
    return begin[i];
  }
  /// Characters from word `i` on, up to a zero.
  std::string text(size_t i) const {
    at(i);
    const char* const characters = reinterpret_cast<const char*>(begin + i);
    const char* const end = characters + (count - i) * sizeof(uint32_t);
    return {characters, std::find(characters, end, '\0')};
  }
};

class Reader {
 public:
  Module read(const std::string& binary) {
    std::vector<uint32_t> words(binary.size() / sizeof(uint32_t));
    const bool is_whole = words.size() >= kHeaderWords && binary.size() % sizeof(uint32_t) == 0;
    if (is_whole) std::memcpy(words.data(), binary.data(), binary.size());
    if (!is_whole || words[0] != kMagic)
      fail(ErrorCode::device, "SPIR-V: %zu bytes are no module", binary.size());
    module_.words.assign(words.begin(), words.begin() + kHeaderWords);
    for (size_t i = kHeaderWords; i < words.size();) {
      const size_t count = words[i] >> 16;
      if (count == 0 || count > words.size() - i)
        fail(ErrorCode::device, "SPIR-V: the instruction at word %zu has a wrong length", i);
      if (!is_reflection(words[i] & 0xFFFF, {&words[i] + 1, count - 1}))
        module_.words.insert(module_.words.end(), words.begin() + i, words.begin() + i + count);
      i += count;
    }
    if (module_.kernel.empty()) fail(ErrorCode::device, "SPIR-V: the module describes no kernel");
    return std::move(module_);
  }

 private:
  /// Keeps what an instruction says; whether it is none for drivers.
  bool is_reflection(uint32_t operation, Words words) {
    switch (operation) {
      case kString:
        strings_[words.at(0)] = words.text(1);
        return false;
      case kConstant:
        constants_[words.at(1)] = words.at(2);
        return false;
      case kExtension:
        return words.text(0) == "SPV_KHR_non_semantic_info";
      case kImport:
        if (words.text(1).rfind("NonSemantic.ClspvReflection", 0) != 0) return false;
        reflection_set_ = words.at(0);
        return true;
      case kInstruction:
        if (reflection_set_ == 0 || words.at(2) != reflection_set_) return false;
        reflect(words.at(3), {words.begin + 4, words.count - 4});
        return true;
      default:
        return false;
    }
  }

  uint32_t number(Words words, size_t i) const {
    const auto found = constants_.find(words.at(i));
    if (found == constants_.end()) fail(ErrorCode::device, "SPIR-V: an argument's place is no constant");
    return found->second;
  }

  void reflect(uint32_t what, Words words) {
    switch (what) {
      case kKernel:
        module_.kernel = strings_[words.at(1)];
        break;
      case kArgumentInfo:
      case kLocalBytes:
        break;
      case kStorageBuffer:
        if (number(words, 2) != 0) fail(ErrorCode::device, "SPIR-V: a buffer is outside descriptor set 0");
        place(words, Module::Argument::Kind::buffer, number(words, 3), 1, module_.bindings);
        break;
      case kPushConstant:
        place(words, Module::Argument::Kind::number, number(words, 2), number(words, 3), module_.push_bytes);
        break;
      case kGroupSizeConstants:
        for (size_t i = 0; i < 3; ++i) module_.group_size_ids[i] = number(words, i);
        break;
      case kFixedGroupSize:
        for (size_t i = 0; i < 3; ++i) module_.group_size[i] = number(words, i + 1);
        break;
      default:
        fail(ErrorCode::device, "SPIR-V: the engine does not know kernels with ClspvReflection %u", what);
    }
  }

  void place(Words words, Module::Argument::Kind kind, uint32_t begin, uint32_t length, uint32_t& end) {
    const uint32_t position = number(words, 1);
    if (position >= 64 || begin >= 4096 || length > 64)
      fail(ErrorCode::device, "SPIR-V: argument %u is at %u", position, begin);
    module_.arguments.resize(std::max<size_t>(module_.arguments.size(), position + 1));
    module_.arguments[position] = {kind, begin};
    end = std::max(end, begin + length);
  }

  Module module_;
  uint32_t reflection_set_ = 0;
  std::map<uint32_t, uint32_t> constants_;
  std::map<uint32_t, std::string> strings_;
};

}  // namespace

Module read_module(const std::string& binary) { return Reader().read(binary); }

}  // namespace phonebit::engine::vulkan
