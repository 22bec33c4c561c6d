#include "arguments.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "failure.h"

namespace phonebit::tools {
namespace {

const OptionRule& find_rule(const std::vector<OptionRule>& rules, const std::string& name) {
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const OptionRule& known) { return name == known.name; });
  if (rule == rules.end()) fail("%s: there is no such option; --help lists them", name.c_str());
  return *rule;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t place = 0; place < words.size(); ++place) {
    if (place > 0) text += place + 1 == words.size() ? " or " : ", ";
    text += words[place];
  }
  return text;
}

}  // namespace

Arguments::Arguments(const std::vector<OptionRule>& rules, int argc, const char* const* argv)
    : rules_(rules) {
  bool may_be_option = true;  // "--" ends the options
  for (int place = 1; place < argc; ++place) {
    const std::string word = argv[place];
    if (may_be_option && word == "--")
      may_be_option = false;
    else if (may_be_option && word.size() > 1 && word[0] == '-')
      place += static_cast<int>(take_option(place, argc, argv));
    else
      files_.push_back(word);
  }
}

/// Gives how many more words it took.
size_t Arguments::take_option(int place, int argc, const char* const* argv) {
  const std::string word = argv[place];
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const OptionRule& rule = find_rule(rules_, name);
  if (has(rule.name) && !rule.is_repeated) fail("%s is given twice", rule.name);
  if (rule.value_name == nullptr) {
    if (equals != std::string::npos)
      fail("%s takes no value, got '%s'", rule.name, word.substr(equals + 1).c_str());
    given_.push_back({rule.name, ""});
    return 0;
  }
  if (equals != std::string::npos) {
    given_.push_back({rule.name, word.substr(equals + 1)});
    return 0;
  }
  if (place + 1 >= argc) fail("%s needs a value: %s %s", rule.name, rule.name, rule.value_name);
  given_.push_back({rule.name, argv[place + 1]});
  return 1;
}

bool Arguments::has(std::string_view name) const {
  return std::any_of(given_.begin(), given_.end(), [&](const Given& given) { return given.name == name; });
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found =
      std::find_if(given_.begin(), given_.end(), [&](const Given& given) { return given.name == name; });
  if (found == given_.end()) return std::nullopt;
  return found->value;
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const Given& given : given_)
    if (given.name == name) values.push_back(given.value);
  return values;
}

int Arguments::number(std::string_view name, int absent, int lowest, int highest) const {
  const std::optional<std::string> value = text(name);
  return value ? parse_number(std::string(name), *value, lowest, highest) : absent;
}

double Arguments::real(std::string_view name, double absent, double lowest, double highest) const {
  const std::optional<std::string> value = text(name);
  if (!value) return absent;
  char* end = nullptr;
  const double number = std::strtod(value->c_str(), &end);
  if (value->empty() || *end != '\0' || !(number >= lowest && number <= highest))
    fail("%s: got '%s', expected a number from %g to %g", std::string(name).c_str(), value->c_str(), lowest,
         highest);
  return number;
}

size_t Arguments::choice(std::string_view name, const std::vector<std::string>& choices) const {
  const std::optional<std::string> value = text(name);
  if (!value) return 0;
  const auto found = std::find(choices.begin(), choices.end(), *value);
  if (found == choices.end())
    fail("%s: got '%s', expected %s", std::string(name).c_str(), value->c_str(), joined(choices).c_str());
  return static_cast<size_t>(found - choices.begin());
}

void Arguments::refuse_with(const char* mode, const std::vector<std::string_view>& names) const {
  for (std::string_view name : names)
    if (has(name)) fail("%s has no effect with %s; leave it out", std::string(name).c_str(), mode);
}

int parse_number(const std::string& what, const std::string& text, int lowest, int highest) {
  char* end = nullptr;
  errno = 0;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno == ERANGE || number < lowest || number > highest)
    fail("%s: got '%s', expected a whole number from %d to %d", what.c_str(), text.c_str(), lowest, highest);
  return static_cast<int>(number);
}

std::string help_text(const char* usage, const std::vector<OptionRule>& rules) {
  constexpr size_t help_column = 28;
  std::string text = usage;
  for (const OptionRule& rule : rules) {
    std::string line = std::string("  ") + rule.name;
    if (rule.value_name != nullptr) line += std::string(" ") + rule.value_name;
    if (line.size() + 2 > help_column)
      line += "\n" + std::string(help_column, ' ');
    else
      line.resize(help_column, ' ');
    text += line + rule.help + "\n";
  }
  return text;
}

}  // namespace phonebit::tools
