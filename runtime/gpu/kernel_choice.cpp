#include "gpu/kernel_choice.h"

#include <algorithm>
#include <charconv>

#include "gpu/kernel_library.h"
#include "gpu/text_fields.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

const Tunable* find_tunable(const std::string& kernel, const std::string& name) {
  for (const Tunable& tunable : tunables(kernel)) {
    if (tunable.name == name) return &tunable;
  }
  return nullptr;
}

std::string list_names(const std::vector<Tunable>& all) {
  std::string text;
  for (const Tunable& tunable : all) text += (text.empty() ? "" : ", ") + tunable.name;
  return text.empty() ? "none" : text;
}

std::string list_values(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

/// One "NAME=VALUE" of `kernel`.
std::pair<std::string, int> parse_parameter(const std::string& kernel, const std::string& field) {
  const size_t sign = field.find('=');
  const std::string name = field.substr(0, sign);
  const Tunable* const tunable = find_tunable(kernel, name);
  if (sign == std::string::npos || name.empty())
    fail(ErrorCode::input, "'%s' of kernel %s is no parameter; expected NAME=VALUE", field.c_str(),
         kernel.c_str());
  if (tunable == nullptr)
    fail(ErrorCode::input, "kernel %s has no parameter %s; it has: %s", kernel.c_str(), name.c_str(),
         list_names(tunables(kernel)).c_str());
  int value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data() + sign + 1, end, value);
  const auto& values = tunable->values;
  if (error != std::errc() || stop != end || std::find(values.begin(), values.end(), value) == values.end())
    fail(ErrorCode::input, "'%s' of kernel %s is not allowed; its values are %s", field.c_str(),
         kernel.c_str(), list_values(values).c_str());
  return {name, value};
}

}  // namespace

int KernelChoice::parameter(const char* name) const {
  for (const auto& [existing, value] : parameters) {
    if (existing == name) return value;
  }
  const Tunable* const tunable = find_tunable(kernel, name);
  if (tunable == nullptr) fail(ErrorCode::internal, "kernel %s has no parameter %s", kernel.c_str(), name);
  return tunable->default_value;
}

std::string KernelChoice::text() const {
  std::string result = kernel;
  for (const auto& [name, value] : parameters) result += " " + name + "=" + std::to_string(value);
  return result;
}

KernelChoice KernelChoice::parse(const std::string& text) {
  std::string_view fields = text;
  KernelChoice choice;
  if (!take_word(fields, choice.kernel))
    fail(ErrorCode::input, "expected a kernel and its parameters, got nothing");
  if (!has_kernel(choice.kernel)) fail(ErrorCode::input, "there is no kernel '%s'", choice.kernel.c_str());
  for (std::string field; take_word(fields, field);) {
    auto parameter = parse_parameter(choice.kernel, field);
    for (const auto& [name, value] : choice.parameters) {
      if (name == parameter.first)
        fail(ErrorCode::input, "parameter %s of kernel %s is given twice", name.c_str(),
             choice.kernel.c_str());
    }
    choice.parameters.push_back(std::move(parameter));
  }
  return choice;
}

std::string KernelChoice::full_text() const {
  KernelChoice full{kernel, {}};
  for (const Tunable& tunable : tunables(kernel))
    full.parameters.emplace_back(tunable.name, parameter(tunable.name.c_str()));
  return full.text();
}

}  // namespace phonebit::engine::gpu
