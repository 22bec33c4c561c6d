#include "gpu/kernel_library.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <set>

#include "format/inflate.h"
#include "gpu/text_fields.h"
#include "loader/file_bytes.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

bool ends_in(std::string_view name, std::string_view end) {
  return name.size() > end.size() && name.substr(name.size() - end.size()) == end;
}

bool is_kernel_file(std::string_view name) {
  return ends_in(name, ".cl") || ends_in(name, ".clh") || ends_in(name, ".table");
}

/// Adds the files of `folder`, whose paths begin with `prefix`; false where it is none.
bool add_folder(const std::string& folder, const std::string& prefix, KernelFiles& into) {
  struct Closing {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Closing> directory(::opendir(folder.c_str()));
  if (!directory) return false;
  while (const dirent* const entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name, path = folder + "/" + name;
    if (name == "." || name == ".." || add_folder(path, prefix + name + "/", into) || !is_kernel_file(name))
      continue;
    const auto bytes = loader::FileBytes::of_path(path);
    into.emplace(prefix + name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return true;
}

struct KernelFile {
  std::string_view text;
  std::vector<Tunable> tunables;
};

/// `// @tune NAME {1,2,4} = 2   what it is`. Anything else is no tunable.
bool parse_tunable(std::string_view line, Tunable& into) {
  std::string slashes, mark, values, sign, preset;
  for (std::string* const word : {&slashes, &mark, &into.name, &values, &sign, &preset})
    if (!take_word(line, *word)) return false;
  const auto take_number = [](std::string_view& text, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc();
  };
  if (slashes != "//" || mark != "@tune" || values[0] != '{' || sign != "=") return false;
  std::string_view list = values, last = preset;
  do {
    list.remove_prefix(1);
    if (!take_number(list, into.values.emplace_back())) return false;
  } while (list.substr(0, 1) == ",");
  return list == "}" && take_number(last, into.default_value);
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

/// Texts of all elements, with commas between them.
template <class List, class TextOf>
std::string joined(const List& list, const TextOf& text_of) {
  std::string text;
  for (const auto& each : list) text += (text.empty() ? "" : ", ") + text_of(each);
  return text;
}

const Tunable* find_tunable(const std::string& kernel, const std::string& name) {
  for (const Tunable& tunable : tunables(kernel)) {
    if (tunable.name == name) return &tunable;
  }
  return nullptr;
}

/// One "NAME=VALUE" of `kernel`.
std::pair<std::string, int> parse_parameter(const std::string& kernel, const std::string& field) {
  const size_t sign = field.find('=');
  const std::string name = field.substr(0, sign);
  const Tunable* const tunable = find_tunable(kernel, name);
  if (sign == std::string::npos || name.empty())
    fail(ErrorCode::input, "'%s' of kernel %s is no parameter; expected NAME=VALUE", field.c_str(),
         kernel.c_str());
  const std::string names = joined(tunables(kernel), [](const Tunable& each) { return each.name; });
  if (tunable == nullptr)
    fail(ErrorCode::input, "kernel %s has no parameter %s; it has: %s", kernel.c_str(), name.c_str(),
         names.empty() ? "none" : names.c_str());
  int value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data() + sign + 1, end, value);
  const auto& values = tunable->values;
  if (error != std::errc() || stop != end || std::find(values.begin(), values.end(), value) == values.end())
    fail(ErrorCode::input, "'%s' of kernel %s is not allowed; its values are %s", field.c_str(),
         kernel.c_str(), joined(values, [](int each) { return std::to_string(each); }).c_str());
  return {name, value};
}

}  // namespace

KernelFiles embedded_files() {
  const std::string all = format::inflate(embedded_stream, embedded_stream_size, embedded_text_size);
  KernelFiles files;
  for (std::string_view rest = all; !rest.empty();) {
    const size_t blank = rest.find(' '), line_end = rest.find('\n');
    size_t size = 0;
    if (blank < line_end && line_end < rest.size())
      std::from_chars(rest.data() + blank + 1, rest.data() + line_end, size);
    const std::string path(rest.substr(0, blank));
    rest.remove_prefix(line_end < rest.size() ? line_end + 1 : rest.size());
    if (size == 0 || size > rest.size())
      fail(ErrorCode::internal,
           "embedded kernels: '%s' has %zu bytes, expected 1 to %zu; build PhoneBit again", path.c_str(),
           size, rest.size());
    files.emplace(path, rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return files;
}

KernelFiles read_kernel_folder(const std::string& folder) {
  KernelFiles files;
  if (!add_folder(folder, "", files))
    fail(ErrorCode::input, "PHONEBIT_KERNELS: %s is no folder; expected one like bnn_kernels",
         folder.c_str());
  return files;
}

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
