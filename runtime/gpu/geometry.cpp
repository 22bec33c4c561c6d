#include "gpu/geometry.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "types/fail.h"

namespace phonebit::engine::gpu {

/// Recursive descent over one `@geometry` or `@channels` line.
class GeometryParser {
 public:
  GeometryParser(std::string_view kernel, std::string_view line, const Defines& defines)
      : kernel_(kernel), line_(line), defines_(defines) {}

  std::vector<Geometry::Expression> list(std::string_view name) {
    expect(name);
    expect("=");
    expect("(");
    std::vector<Geometry::Expression> result;
    do {
      result.push_back(expression());
    } while (accept(","));
    expect(")");
    return result;
  }
  Geometry::Expression expression() {
    out_.clear();
    sum();
    return out_;
  }
  void expect(std::string_view token) {
    if (!accept(token)) bad(("expected '" + std::string(token) + "'").c_str());
  }

 private:
  [[noreturn]] void bad(const char* what) const {
    fail(ErrorCode::internal, "kernel %s: work sizes '%s': %s at column %zu", kernel_.c_str(), line_.c_str(),
         what, at_ + 1);
  }
  void skip_blanks() {
    while (at_ < line_.size() && line_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip_blanks();
    if (line_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void emit(char operation, double number = 0.0) { out_.push_back({operation, number}); }

  void sum() { chain("+-", &GeometryParser::product); }
  void product() { chain("*/", &GeometryParser::factor); }
  /// Operands with any of the signs between them, from left to right.
  void chain(std::string_view signs, void (GeometryParser::*operand)()) {
    (this->*operand)();
    while (const char sign = accept_one_of(signs)) {
      (this->*operand)();
      emit(sign);
    }
  }
  /// '\0' where none follows.
  char accept_one_of(std::string_view signs) {
    for (size_t i = 0; i < signs.size(); ++i)
      if (accept(signs.substr(i, 1))) return signs[i];
    return '\0';
  }
  void factor() {
    if (accept("(")) {
      sum();
      return expect(")");
    }
    const size_t begin = at_;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) || line_[at_] == '_'))
      ++at_;
    const std::string word = line_.substr(begin, at_ - begin);
    if (word.empty()) bad("expected a number or a name");
    if (accept("(")) return call(word);
    if (word == "pixels") return emit('P');
    if (word == "channels") return emit('C');
    const std::string* const value =
        std::isdigit(static_cast<unsigned char>(word[0])) ? &word : defines_.find(word);
    if (value == nullptr) bad(("unknown name '" + word + "'").c_str());
    emit('n', std::atof(value->c_str()));
  }
  void call(const std::string& function) {
    const char operation = function == "ceil"      ? 'c'
                           : function == "roundup" ? 'r'
                           : function == "max"     ? 'M'
                           : function == "min"     ? 'm'
                                                   : '\0';
    if (operation == '\0') bad(("unknown function '" + function + "'").c_str());
    sum();
    if (operation != 'c') {
      expect(",");
      sum();
    }
    expect(")");
    emit(operation);
  }

  std::string kernel_, line_;
  const Defines& defines_;
  size_t at_ = 0;
  Geometry::Expression out_;
};

namespace {

/// What follows `// @key` in a program's text; empty where there is none.
std::string_view header_line(std::string_view text, std::string_view key) {
  const std::string mark = "\n// @" + std::string(key) + " ";
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

Geometry Geometry::of_program(std::string_view kernel, std::string_view text, const Defines& defines) {
  const std::string_view line = header_line(text, "geometry");
  if (line.empty()) fail(ErrorCode::internal, "kernel %s: no @geometry line", std::string(kernel).c_str());
  GeometryParser parser(kernel, line, defines);
  Geometry geometry;
  geometry.global_ = parser.list("global");
  parser.expect(",");
  const std::vector<Expression> local = parser.list("local");
  if (local.size() != geometry.global_.size() || local.size() > 3)
    fail(ErrorCode::internal, "kernel %s: @geometry has %zu global and %zu local sizes",
         std::string(kernel).c_str(), geometry.global_.size(), local.size());
  for (size_t i = 0; i < local.size(); ++i) geometry.local_[i] = evaluate(local[i], 1, 1);
  return geometry;
}

int channel_grain(const KernelChoice& choice) {
  const std::string_view line = header_line(kernel_text(choice.kernel), "channels");
  if (line.empty()) return 0;
  Defines defines;
  for (const Tunable& tunable : tunables(choice.kernel))
    defines.set(tunable.name.c_str(), choice.parameter(tunable.name.c_str()));
  return static_cast<int>(
      Geometry::evaluate(GeometryParser(choice.kernel, line, defines).expression(), 1, 1));
}

Extent Geometry::global(int pixels, int channels) const {
  Extent result{1, 1, 1};
  for (size_t i = 0; i < global_.size(); ++i) result[i] = evaluate(global_[i], pixels, channels);
  return result;
}

size_t Geometry::evaluate(const Expression& expression, int pixels, int channels) {
  std::vector<double> stack;
  for (const auto& [operation, number] : expression) {
    if (operation == 'n' || operation == 'P' || operation == 'C') {
      stack.push_back(operation == 'n' ? number : operation == 'P' ? pixels : channels);
      continue;
    }
    const double b = stack.back();
    if (operation != 'c') stack.pop_back();
    double& a = stack.back();
    a = operation == '+'   ? a + b
        : operation == '-' ? a - b
        : operation == '*' ? a * b
        : operation == '/' ? a / b
        : operation == 'c' ? std::ceil(a)
        : operation == 'r' ? std::ceil(a / b) * b
        : operation == 'M' ? std::max(a, b)
                           : std::min(a, b);
  }
  return static_cast<size_t>(stack.back());
}

}  // namespace phonebit::engine::gpu
