// The command line of a program: options as "--name value" or "--name=value", flags, and files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phonebit::tools {

/// One option that a program knows.
struct OptionRule {
  const char* name;        ///< "--threads"
  const char* value_name;  ///< "N"; null: a flag, which takes no value
  const char* help;
  bool is_repeated = false;  ///< may be given several times
};

/// Options and files of one call. Every error is a Failure that names the option, what was got and what is
/// expected.
class Arguments {
 public:
  /// Reads a command line. Throws Failure for options that are unknown, lack a value, have one too many, or
  /// are given twice. Keeps a reference to `rules`.
  Arguments(const std::vector<OptionRule>& rules, int argc, const char* const* argv);

  bool has(std::string_view name) const;
  /// The value of an option; absent if it was not given.
  std::optional<std::string> text(std::string_view name) const;
  /// The values of an option that may be repeated, in order.
  std::vector<std::string> all(std::string_view name) const;
  /// A whole number of a range; `absent` if the option was not given.
  int number(std::string_view name, int absent, int lowest, int highest) const;
  /// A number of a range, likewise.
  double real(std::string_view name, double absent, double lowest, double highest) const;
  /// The place of the value in `choices`; 0 if the option was not given.
  size_t choice(std::string_view name, const std::vector<std::string>& choices) const;
  /// What is no option, in order.
  const std::vector<std::string>& files() const { return files_; }
  /// Throws Failure if one of `names` was given: they have no effect with `mode`.
  void refuse_with(const char* mode, const std::vector<std::string_view>& names) const;

 private:
  struct Given {
    std::string_view name;  // of a rule
    std::string value;
  };
  size_t take_option(int place, int argc, const char* const* argv);

  const std::vector<OptionRule>& rules_;
  std::vector<Given> given_;
  std::vector<std::string> files_;
};

/// A whole number of a range. Throws Failure, in which `what` stands for the number's place.
int parse_number(const std::string& what, const std::string& text, int lowest, int highest);

/// The text for --help: `usage`, then a line for each option.
std::string help_text(const char* usage, const std::vector<OptionRule>& rules);

}  // namespace phonebit::tools
