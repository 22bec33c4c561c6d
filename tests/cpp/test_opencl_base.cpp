// What the OpenCL runtime does before it touches a device: names, families, kernel texts, choices, the tuning
// table and the files of the program cache.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check_error.h"
#include "gpu/binary_store.h"
#include "gpu/kernel_library.h"
#include "gpu/program_cache.h"
#include "gpu/tuning_table.h"
#include "opencl/cl_api.h"
#include "opencl/context.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::test;
using namespace phonebit::engine::gpu;
using namespace phonebit::engine::opencl;

TEST_CASE("statuses have names") {
  CHECK(name_of_status(0) == "CL_SUCCESS");
  CHECK(name_of_status(-5) == "CL_OUT_OF_RESOURCES");
  CHECK(name_of_status(-72) == "CL_MAX_SIZE_RESTRICTION_EXCEEDED");
  CHECK(name_of_status(-1001) == "CL_PLATFORM_NOT_FOUND_KHR");
  CHECK(name_of_status(-9999) == "CL error -9999");
  check(0, "clFoo");
  check_error(ErrorCode::device, {"clFoo: CL_OUT_OF_RESOURCES (-5); conv1"}, "check",
              [] { check(-5, "clFoo", "conv1"); });
}

TEST_CASE("hints are told to drivers that take them") {
  using Context = std::vector<intptr_t>;
  using Queue = std::vector<cl_properties>;
  opencl::ClDevice device{};
  for (const Hint hint : {Hint::none, Hint::performance, Hint::power}) {
    CHECK(context_properties(device, hint) == Context{0x1084, 0, 0});
    CHECK(queue_properties(device, 2, hint) == Queue{0x1093, 2, 0});
  }
  device.has_performance_hint = device.has_throttle_hint = true;
  CHECK(context_properties(device, Hint::none) == Context{0x1084, 0, 0});
  CHECK(context_properties(device, Hint::power) == Context{0x1084, 0, 0x40C2, 0x40C5, 0});
  CHECK(context_properties(device, Hint::performance) == Context{0x1084, 0, 0x40C2, 0x40C3, 0});
  CHECK(queue_properties(device, 0, Hint::none) == Queue{0x1093, 0, 0});
  CHECK(queue_properties(device, 2, Hint::power) == Queue{0x1093, 2, 0x1097, 4, 0});
  CHECK(queue_properties(device, 0, Hint::performance) == Queue{0x1093, 0, 0x1097, 1, 0});
}

/// What drivers say about a device, as far as vendor and family follow from it.
struct DeviceNames {
  std::string name, vendor_name, platform_name, version;
  bool is_gpu;
  int compute_capability;

  DeviceFacts facts() const {
    DeviceFacts facts{};
    facts.name = name;
    facts.vendor_name = vendor_name;
    facts.platform_name = platform_name;
    facts.version = version;
    facts.is_gpu = is_gpu;
    return facts;
  }
};
std::string vendor_of(const DeviceNames& names) { return gpu::vendor_of(names.facts()); }
std::string family_of(const DeviceNames& names) {
  return gpu::family_of(names.facts(), names.compute_capability);
}

TEST_CASE("families follow from names") {
  struct Case {
    DeviceNames names;
    const char *vendor, *family;
  };
  const auto nvidia = [](const char* name, int capability) -> DeviceNames {
    return {name, "NVIDIA Corporation", "NVIDIA CUDA", "OpenCL 3.0 CUDA", true, capability};
  };
  const auto gpu = [](const char* name, const char* vendor, const char* platform,
                      const char* version = "OpenCL 3.0") -> DeviceNames {
    return {name, vendor, platform, version, true, 0};
  };
  const auto adreno = [&](const char* name, const char* version) {
    return gpu(name, "QUALCOMM", "QUALCOMM Snapdragon(TM)", version);
  };
  const auto mali = [&](const char* name, const char* version) {
    return gpu(name, "ARM", "ARM Platform", version);
  };
  const Case cases[] = {
      {nvidia("NVIDIA H200", 90), "nvidia", "hopper"},
      {nvidia("NVIDIA L4", 89), "nvidia", "ada"},
      {nvidia("NVIDIA A100", 80), "nvidia", "ampere"},
      {nvidia("Tegra", 87), "nvidia", "ampere"},
      {nvidia("Tesla T4", 75), "nvidia", "turing"},
      {nvidia("Tesla V100", 70), "nvidia", "volta"},
      {nvidia("NVIDIA B200", 100), "nvidia", "blackwell"},
      {nvidia("RTX 5090", 120), "nvidia", "blackwell"},
      {nvidia("later", 200), "nvidia", "unknown"},
      {adreno("QUALCOMM Adreno(TM)", "OpenCL 2.0 Adreno(TM) 640"), "qualcomm", "adreno6xx"},
      {adreno("QUALCOMM Adreno(TM) 740", "OpenCL 3.0"), "qualcomm", "adreno7xx"},
      {adreno("Adreno (TM) 530", "OpenCL 2.0"), "qualcomm", "adreno5xx"},
      {adreno("QUALCOMM Adreno(TM) X1-85", "OpenCL 3.0"), "qualcomm", "adreno7xx"},
      {adreno("QUALCOMM Adreno(TM)", "OpenCL 2.0"), "qualcomm", "unknown"},
      {mali("Mali-T880", "OpenCL 1.2 v1.r22p0"), "arm", "midgard"},
      {mali("Mali-G71", "OpenCL 2.0 v1.r30p0"), "arm", "bifrost"},
      {mali("Mali-G76 r0p0", "OpenCL 2.0"), "arm", "bifrost"},
      {mali("Mali-G77", "OpenCL 2.0"), "arm", "valhall"},
      {mali("Mali-G710 r0p0", "OpenCL 3.0"), "arm", "valhall"},
      {mali("Mali-Immortalis-G715", "OpenCL 3.0"), "arm", "valhall"},
      {mali("Immortalis-G925", "OpenCL 3.0"), "arm", "mali5"},
      {mali("Mali-G999", "OpenCL 3.0"), "arm", "unknown"},
      {{"pthread-skylake-avx512", "GenuineIntel", "Portable Computing Language", "OpenCL 3.0", false, 0},
       "pocl",
       "cpu"},
      {gpu("Mali-G52 r1 (Panfrost)", "Arm", "rusticl"), "mesa", "bifrost"},
      {gpu("FD618", "freedreno", "rusticl"), "mesa", "adreno6xx"},
      {gpu("llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa", "rusticl"), "mesa", "cpu"},
      {gpu("AMD Radeon RX 7900 XTX", "AMD", "rusticl"), "mesa", "unknown"},
      {gpu("gfx1100", "Advanced Micro Devices, Inc.", "AMD Accelerated Parallel Processing", "OpenCL 2.0"),
       "amd", "unknown"},
      {gpu("Intel(R) UHD Graphics 620", "Intel(R) Corporation", "Intel(R) OpenCL Graphics"), "intel",
       "unknown"},
      {gpu("Apple M1", "Apple", "Apple", "OpenCL 1.2 "), "apple", "unknown"},
      {gpu("PowerVR Rogue GE8320", "Imagination Technologies", "PowerVR", "OpenCL 1.2"), "unknown",
       "powervr"},
      {gpu("Samsung Xclipse 940", "Samsung", "Samsung"), "unknown", "xclipse"},
      {gpu("Charm", "Charming Devices", "Charm", "OpenCL 1.2 "), "unknown", "unknown"},
      {gpu("", "", "", ""), "unknown", "unknown"},
  };
  for (const Case& one : cases) {
    INFO(one.names.name);
    CHECK(vendor_of(one.names) == one.vendor);
    CHECK(family_of(one.names) == one.family);
  }
}

// Families are found by asking about every model number, so that a new one in the recognition is among them.
TEST_CASE("every family that is recognised has lines of its own in the tuning table") {
  std::set<std::pair<std::string, std::string>> families;
  const auto recognise = [&](const std::string& name, const char* vendor, int capability = 0) {
    const DeviceNames names{name, vendor, "", "OpenCL 3.0", true, capability};
    if (family_of(names) != "unknown") families.emplace(vendor_of(names), family_of(names));
  };
  for (int model = 1; model < 1000; ++model) {
    const std::string number = std::to_string(model);
    recognise("NVIDIA", "NVIDIA Corporation", model);
    recognise("Mali-T" + number, "ARM");
    recognise("Mali-G" + number, "ARM");
    recognise("PowerVR B-Series " + number, "Imagination Technologies");
    recognise("Samsung Xclipse " + number, "Samsung");
    recognise("Adreno (TM) " + number, "QUALCOMM");
  }
  CHECK(families.size() == 24);  // a change here is a change of the recognition
  const TuningTable table = TuningTable::parse(built_in_tuning_table(), "tuning.table");
  for (const auto& names : families) {
    const auto &vendor = names.first, &family = names.second;
    for (const char* op : {"binary_conv2d", "conv2d_u8"}) {
      const auto names_it = [&](const TuningEntry& entry) {
        const bool vendors = entry.vendor == vendor && entry.family == "*";
        return entry.op == op && entry.shape == "*" && (vendors || entry.family == family);
      };
      INFO(vendor, " ", family, ": tuning.table has no line of ", op, " for every shape");
      CHECK(std::any_of(table.entries().begin(), table.entries().end(), names_it));
    }
  }
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Of the embedded files.
std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const auto& [path, source] : embedded_files()) {
    const std::filesystem::path file(path);
    if (file.extension() == ".cl") names.push_back(file.stem().string());
  }
  return names;
}

TEST_CASE("kernels are assembled") {
  const KernelFiles files = embedded_files();
  REQUIRE(!kernel_names().empty());
  for (const auto& [path, source] : files) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (path.substr(path.size() - 3) != ".cl") {
      CHECK(!has_kernel(name));
      continue;
    }
    CHECK(has_kernel(name));
    const std::string text = assemble(name, {});
    INFO(name);
    CHECK(count_of("\n" + source, "\n// @tune") == tunables(name).size());
    CHECK(count_of(text, "\n#include") == 0);
    size_t at = 0;
    for (const Tunable& tunable : tunables(name)) {
      const std::string line = "#define " + tunable.name + " " + std::to_string(tunable.default_value) + "\n";
      CHECK(text.substr(at, line.size()) == line);
      at += line.size();
      const std::set<int> values(tunable.values.begin(), tunable.values.end());
      CHECK_MESSAGE(values.size() == tunable.values.size(), tunable.name, " has a value twice");
      CHECK_MESSAGE(values.count(tunable.default_value) == 1, tunable.name, " may not have its default");
    }
    for (const auto& included : files) {
      if (included.first.rfind("common/", 0) != 0) continue;
      CHECK_MESSAGE(count_of(text, included.second.substr(0, 60)) <= 1, included.first, " is there twice");
    }
  }
  check_error(ErrorCode::internal, {"no kernel 'nothing'"}, "unknown", [] { assemble("nothing", {}); });
}

/// A kernel with a tunable of two values at least.
std::pair<std::string, Tunable> tunable_kernel() {
  for (const std::string& name : kernel_names()) {
    for (const Tunable& tunable : tunables(name)) {
      if (tunable.values.size() >= 2) return {name, tunable};
    }
  }
  return {};
}

int other_value(const Tunable& tunable) {
  return tunable.values[0] == tunable.default_value ? tunable.values[1] : tunable.values[0];
}

TEST_CASE("defines replace defaults") {
  const auto [kernel, tunable] = tunable_kernel();
  const std::string value = std::to_string(other_value(tunable));
  Defines defines;
  defines.set("IN_H", 7);
  defines.set(tunable.name.c_str(), value);
  defines.set("NEW_NAME", "a + b");
  defines.set("IN_H", 8);
  REQUIRE(defines.all().size() == 3);
  CHECK(*defines.find("IN_H") == "8");
  CHECK(defines.find("IN_W") == nullptr);
  const std::string text = assemble(kernel, defines);
  const std::string head = text.substr(0, text.find("\n//"));  // the kernel's own defines may follow
  CHECK(count_of(head, "#define " + tunable.name + " " + value + "\n") == 1);
  CHECK(count_of(head, "#define " + tunable.name + " ") == 1);
  const std::string last = "#define IN_H 8\n#define NEW_NAME a + b";
  REQUIRE(head.size() > last.size());
  CHECK(head.substr(head.size() - last.size()) == last);
}

TEST_CASE("choices are parsed") {
  const auto [kernel, tunable] = tunable_kernel();
  const std::string name = tunable.name;
  const std::string text = kernel + " " + name + "=" + std::to_string(other_value(tunable));
  const KernelChoice choice = KernelChoice::parse("  " + kernel + "\t" + text.substr(kernel.size()) + " ");
  CHECK(choice.text() == text);
  CHECK(choice.parameter(name.c_str()) == other_value(tunable));
  const KernelChoice defaults = KernelChoice::parse(kernel);
  REQUIRE(defaults.parameters.empty());
  CHECK(defaults.parameter(name.c_str()) == tunable.default_value);
  const std::string written = kernel + " " + name + "=" + std::to_string(tunable.default_value);
  CHECK(KernelChoice::parse(written).full_text() == defaults.full_text());
  CHECK(choice.full_text() != defaults.full_text());
  for (const std::string& each : kernel_names()) {
    const std::string full = KernelChoice::parse(each).full_text();
    CHECK(KernelChoice::parse(full).full_text() == full);
  }
  const auto refuses = [](const std::string& wrong, const std::string& part) {
    check_error(ErrorCode::input, {part}, "'" + wrong + "'", [&] { KernelChoice::parse(wrong); });
  };
  refuses("", "got nothing");
  refuses("no_such_kernel", "no kernel 'no_such_kernel'");
  refuses(kernel + " NO_SUCH=1", "no parameter NO_SUCH");
  refuses(kernel + " " + name, "expected NAME=VALUE");
  refuses(kernel + " =1", "expected NAME=VALUE");
  for (const char* value : {"", "x", "1x", "99999", "99999999999999999999", "-77", "0x1", "1.0"})
    refuses(kernel + " " + name + "=" + value, "not allowed");
  refuses(text + text.substr(kernel.size()), "given twice");
  check_error(ErrorCode::internal, {"no parameter NO_SUCH"}, "parameter()",
              [&] { choice.parameter("NO_SUCH"); });
}

DeviceFacts phone() {
  DeviceFacts device{};
  device.name = "QUALCOMM Adreno(TM) 640";
  device.vendor = "qualcomm";
  device.family = "adreno6xx";
  return device;
}

std::vector<std::string> kernels_of(const std::vector<KernelChoice>& choices) {
  std::vector<std::string> names;
  for (const KernelChoice& choice : choices) names.push_back(choice.text());
  return names;
}

TEST_CASE("table prefers the specific") {
  const std::vector<std::string> k = kernel_names();
  REQUIRE(k.size() >= 12);
  CHECK(table_name(phone().name) == "QUALCOMM_Adreno(TM)_640");
  const TuningQuery query = {"binary_conv2d", "window", "3x3s1d1g1_64c_56x56_64c"};
  const std::string signature = query.signature;
  const std::string text =
      "# a comment\n\n"
      "binary_conv2d * * * * " +
      k[0] + "\n" + "binary_conv2d window * * * " + k[1] + " # and another\n" + "binary_conv2d " + signature +
      " * * * " + k[2] + "\n" + "binary_conv2d " + signature + " qualcomm * * " + k[3] + "\n" +
      "binary_conv2d * qualcomm adreno6xx * " + k[4] + "\n" + "binary_conv2d window * adreno6xx * " + k[5] +
      "\n" + "binary_conv2d * * * " + table_name(phone().name) + " " + k[6] + "\n" +
      "binary_conv2d * nvidia * * " + k[7] + "\n" + "binary_conv2d * qualcomm adreno7xx * " + k[8] + "\n" +
      "binary_conv2d small qualcomm adreno6xx * " + k[9] + "\n" + "conv2d_f32 * * * * " + k[10] + "\n" +
      "\tbinary_conv2d  * qualcomm * *   " + k[3] + "\r\n" + "binary_conv2d * * * * " + k[11];
  TuningTable table = TuningTable::parse(text, "test");
  CHECK(table.entries().size() == 13);
  const std::vector<std::string> expected = {k[6], k[4], k[5], k[3], k[2], k[1], k[0], k[11]};
  // DeviceFacts, family, vendor; then exact shape, class, any; then the order of the table; each choice once.
  CHECK(kernels_of(table.choices(query, phone())) == expected);
  CHECK_MESSAGE(table.choices({"conv2d_u8", "window", signature}, phone()).empty(), "an op without entries");
  CHECK(TuningTable::parse(table.text(), "copy").text() == table.text());

  table.prepend(
      TuningTable::parse("binary_conv2d * * * * " + k[9] + "\nbinary_conv2d * * * * " + k[0], "mine"));
  const std::vector<std::string> mixed = {k[6], k[4], k[5], k[3], k[2], k[1], k[9], k[0], k[11]};
  CHECK(kernels_of(table.choices(query, phone())) == mixed);  // prepended entries win among equals only
}

TEST_CASE("table refuses nonsense") {
  const std::string kernel = kernel_names()[0];
  const auto refuses = [](const std::string& line, const std::string& part) {
    check_error(ErrorCode::input, {"mine.table:2: ", part}, "'" + line + "'",
                [&] { TuningTable::parse("# first\n" + line + "\n", "mine.table"); });
  };
  refuses("binary_conv2d", "expected op, shape");
  refuses("binary_conv2d * * * # " + kernel, "expected op, shape");
  refuses("binary_conv2d * * * *", "got nothing");
  refuses("binary_conv2d * * * " + kernel, "got nothing");
  refuses("binary_conv2d * * * * no_such_kernel", "no kernel");
  refuses("binary_conv2d * * * * " + kernel + " NO_SUCH=1", "no parameter NO_SUCH");
  CHECK_MESSAGE(TuningTable::parse("", "empty").entries().empty(), "an empty table is a table");
  const TuningTable built_in = TuningTable::parse(built_in_tuning_table(), "tuning.table");
  const TuningQuery query = {"binary_conv2d", "window", "3x3s1d1g1_64c_56x56_64c"};
  CHECK_FALSE_MESSAGE(built_in.choices(query, phone()).empty(),
                      "the built-in table serves binary convolutions on any device");
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST_CASE("a store detects damage") {
  const TemporaryFolder folder;
  const BinaryStore store(folder.path() + "/new/deep");
  const std::string key = "device, options and text";
  const std::string binary("\0binary\n\xFF", 9);
  CHECK(!store.load(key).binary);
  CHECK(!store.load(key).is_rejected);
  store.store(key, binary);
  CHECK(store.load(key).binary == binary);
  CHECK_MESSAGE(!store.load("another key").binary, "under its key only");
  const std::string path = store.path(key);
  const std::string file = read(path);
  const auto is_refused = [&] { return !store.load(key).binary && store.load(key).is_rejected; };
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char mask : {'\x01', '\x80'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      write(path, damaged);
      CHECK_MESSAGE(is_refused(), "a flipped bit in byte ", at, " is found");
    }
    write(path, file.substr(0, at));
    CHECK_MESSAGE(is_refused(), "a file cut at ", at, " is found");
  }
  write(path, file + "x");
  CHECK_MESSAGE(is_refused(), "a longer file is found");
  store.store("another key", binary);
  std::filesystem::copy_file(store.path("another key"), path,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_MESSAGE(is_refused(), "a file of another key is found");
  store.store(key, binary);
  CHECK(store.load(key).binary == binary);

  std::filesystem::remove(path);
  ::mkfifo(path.c_str(), 0600);
  CHECK_MESSAGE(is_refused(), "a named pipe is not waited for");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK_MESSAGE(is_refused(), "a folder is no entry");
  store.store(key, binary);
  CHECK_MESSAGE(is_refused(), "and stays, with its contents");
  const BinaryStore nowhere("/proc/no/such/folder");
  nowhere.store(key, binary);
  CHECK_MESSAGE(!nowhere.load(key).binary, "a folder that cannot be is no error");
  BinaryStore("").store(key, binary);
  CHECK_MESSAGE(!BinaryStore("").load(key).binary, "nor is none");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/new/deep"))
    CHECK_MESSAGE(entry.path().extension() == ".clbin", "no temporary file is left: ", entry.path().string());
}

/// Processes write one entry over and over; a reader finds one of them complete.
TEST_CASE("a store is safe between processes") {
  const TemporaryFolder folder;
  const BinaryStore store(folder.path() + "/shared");
  const std::string key = "the same key";
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (int i = 0; i < 200; ++i) store.store(key, std::string(20000, static_cast<char>('a' + child)));
      ::_exit(0);
    }
    children.push_back(pid);
  }
  bool is_sound = true;
  for (int i = 0; i < 500; ++i) {
    const StoredBinary found = store.load(key);
    is_sound = is_sound && !found.is_rejected &&
               (!found.binary || *found.binary == std::string(20000, (*found.binary)[0]));
  }
  for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  CHECK(is_sound);
  CHECK(store.load(key).binary);
}

TEST_CASE("cache directory follows the environment") {
  ::unsetenv("PHONEBIT_CACHE_DIR");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/me", 1);
  CHECK(cache_directory("/mine") == "/mine");
  CHECK(cache_directory("") == "/home/me/.cache/phonebit");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  CHECK(cache_directory("") == "/home/me/.cache/phonebit");
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  CHECK(cache_directory("") == "/cache/phonebit");
  ::setenv("PHONEBIT_CACHE_DIR", "/here", 1);
  CHECK(cache_directory("") == "/here");
  for (const char* name : {"PHONEBIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
  CHECK_MESSAGE(cache_directory("").empty(), "nothing to go by");
}

TEST_CASE("a missing library is explained") {
  ::setenv("PHONEBIT_OPENCL_LIBRARY", "/no/such/libOpenCL.so", 1);
  CHECK_FALSE_MESSAGE(is_available(), "a library that is not there");
  CHECK_MESSAGE(devices().empty(), "then there are no devices");
  check_error(ErrorCode::device, {"/no/such/libOpenCL.so", "PHONEBIT_OPENCL_LIBRARY"}, "api()",
              [] { api(); });
  ::setenv("PHONEBIT_OPENCL_LIBRARY", "libm.so.6", 1);
  use_library("");
  CHECK_FALSE_MESSAGE(is_available(), "a library of something else");
}

}  // namespace
