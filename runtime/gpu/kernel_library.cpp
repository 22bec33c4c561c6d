#include "gpu/kernel_library.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "gpu/kernel_files.h"
#include "gpu/text_fields.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

struct KernelFile {
  std::string_view text;
  std::vector<Tunable> tunables;
};

/// Reads a line from left to right; each step says whether it fitted.
struct Scanner {
  std::string_view rest;

  bool blanks() {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t')) rest.remove_prefix(1);
    return true;
  }
  bool text(std::string_view expected) {
    if (rest.substr(0, expected.size()) != expected) return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  bool name(std::string& into) {
    size_t size = 0;
    while (size < rest.size() &&
           (std::isalnum(static_cast<unsigned char>(rest[size])) != 0 || rest[size] == '_'))
      ++size;
    into = rest.substr(0, size);
    rest.remove_prefix(size);
    return size > 0;
  }
  bool number(int& into) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), into);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return true;
  }
};

/// `// @tune NAME {1,2,4} = 2   what it is`. Anything else is no tunable, as in sources.py.
bool parse_tunable(std::string_view line, Tunable& into) {
  Scanner scanner{line};
  if (!scanner.text("// @tune ") || !scanner.blanks() || !scanner.name(into.name) || !scanner.blanks() ||
      !scanner.text("{"))
    return false;
  do {
    int value = 0;
    if (!scanner.number(value)) return false;
    into.values.push_back(value);
  } while (scanner.text(","));
  return scanner.text("}") && scanner.blanks() && scanner.text("=") && scanner.blanks() &&
         scanner.number(into.default_value);
}

/// The parsed library. Views point into `files`.
struct Library {
  KernelFiles files = embedded_files();
  std::map<std::string, KernelFile, std::less<>> kernels;

  Library() {
    // For work on kernels without building, and for tests that plant a fault.
    if (const char* const folder = std::getenv("PHONEBIT_KERNELS")) {
      for (auto& [path, text] : read_kernel_folder(folder)) files[path] = std::move(text);
    }
    for (const auto& [path, text] : files) {
      if (path.size() < 3 || path.substr(path.size() - 3) != ".cl") continue;
      const std::string name = path.substr(path.rfind('/') + 1);
      KernelFile& kernel = kernels[name.substr(0, name.size() - 3)];
      kernel.text = text;
      for (std::string_view rest = text, line; take_line(rest, line);) {
        Tunable tunable;
        if (parse_tunable(line, tunable)) kernel.tunables.push_back(std::move(tunable));
      }
    }
  }

  const KernelFile& kernel(std::string_view name) const {
    const auto at = kernels.find(name);
    if (at == kernels.end()) fail(ErrorCode::internal, "there is no kernel '%s'", std::string(name).c_str());
    return at->second;
  }
};

const Library& library() {
  static const Library instance;
  return instance;
}

/// Appends `text` with its includes replaced: by the file the first time, by nothing afterwards.
void expand(std::string_view text, std::set<std::string_view>& seen, std::string& out) {
  for (std::string_view line; take_line(text, line);) {
    constexpr std::string_view prefix = "#include \"common/";
    if (line.substr(0, prefix.size()) != prefix || line.back() != '"') {
      out.append(line) += '\n';
      continue;
    }
    const std::string_view path = line.substr(10, line.size() - 11);
    const auto at = library().files.find(path);
    if (at == library().files.end())
      fail(ErrorCode::internal, "there is no kernel file '%s' to include", std::string(path).c_str());
    if (seen.insert(at->first).second) expand(at->second, seen, out);
  }
}

}  // namespace

void Defines::set(const char* name, std::string value) {
  for (auto& [existing, old] : all_) {
    if (existing == name) {
      old = std::move(value);
      return;
    }
  }
  all_.emplace_back(name, std::move(value));
}

void Defines::set(const char* name, int value) { set(name, std::to_string(value)); }

const std::string* Defines::find(std::string_view name) const {
  for (const auto& [existing, value] : all_) {
    if (existing == name) return &value;
  }
  return nullptr;
}

bool has_kernel(std::string_view kernel) { return library().kernels.count(kernel) > 0; }

const std::vector<Tunable>& tunables(std::string_view kernel) { return library().kernel(kernel).tunables; }

std::string_view kernel_text(std::string_view kernel) { return library().kernel(kernel).text; }

std::string_view built_in_tuning_table() {
  const auto at = library().files.find("tuning.table");
  return at == library().files.end() ? std::string_view() : std::string_view(at->second);
}

std::string assemble(std::string_view kernel, const Defines& defines) {
  const KernelFile& found = library().kernel(kernel);
  Defines all;
  for (const Tunable& tunable : found.tunables) all.set(tunable.name.c_str(), tunable.default_value);
  for (const auto& [name, value] : defines.all()) all.set(name.c_str(), value);
  std::string text;
  for (const auto& [name, value] : all.all()) text += "#define " + name + " " + value + "\n";
  std::set<std::string_view> seen;
  expand(found.text, seen, text);
  return text;
}

}  // namespace phonebit::engine::gpu
