#include "opencl/program_cache.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "opencl/cl_functions.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {
namespace {

std::atomic<void (*)()> compile_hook{nullptr};

/// In place of a binary.
constexpr const char* kKeptByDriver = "kept by the driver";

std::string build_options(const Device& device, const char* standard) {
  // -w: a driver may print its compiler's warnings on the user's terminal (NVIDIA's: "1 warning generated.").
  std::string options = std::string("-w -cl-std=") + standard;
  if (device.has_exact_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

/// Everything that a binary depends on, each part with its length in front so that no two lists make one key.
std::string store_key(const Device& device, const std::string& options, const std::string& text) {
  std::string key;
  for (const std::string& part : {device.key(), device.vendor_name, device.version, options, text})
    key += std::to_string(part.size()) + ":" + part + "\n";
  return key;
}

}  // namespace

void set_compile_hook(void (*hook)()) { compile_hook = hook; }

ProgramCache::ProgramCache(std::shared_ptr<Context> context, std::string directory)
    : context_(std::move(context)),
      store_(std::move(directory)),
      options_(build_options(context_->device(), "CL1.2")),
      atomics_options_(build_options(
          context_->device(), context_->device().version.rfind("OpenCL 2.", 0) == 0 ? "CL2.0" : "CL3.0")) {}

Handle<cl_kernel> ProgramCache::kernel(const std::string& name, const std::string& text, Language language) {
  const Source source{name, text, language == Language::core ? options_ : atomics_options_};
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Entry>& slot = programs_[source.options + "\n" + text];
    if (slot == nullptr) slot = std::make_shared<Entry>();
    entry = slot;
  }
  const std::lock_guard<std::mutex> lock(entry->mutex);
  if (!entry->program) entry->program = load_or_build(source);
  cl_int status = CL_SUCCESS;
  Handle<cl_kernel> kernel(api().clCreateKernel(entry->program.get(), name.c_str(), &status));
  if (status != CL_SUCCESS) fail_build(source, "clCreateKernel", status, build_log(entry->program.get()));
  return kernel;
}

std::string_view ProgramCache::kept(const std::string& text) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::string_view(programs_.find(options_ + "\n" + text)->first).substr(options_.size() + 1);
}

ProgramStatistics ProgramCache::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

Handle<cl_program> ProgramCache::load_or_build(const Source& source) {
  const std::string key = store_key(context_->device(), source.options, source.text);
  const StoredBinary stored = store_.load(key);
  const bool is_kept = stored.binary && *stored.binary == kKeptByDriver;
  if (stored.binary && !is_kept) {
    if (Handle<cl_program> program = load(source, *stored.binary)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++statistics_.loaded;
      return program;
    }
  }
  void (*const hook)() = compile_hook;
  if (!is_kept && hook) hook();
  const auto start = std::chrono::steady_clock::now();
  Handle<cl_program> program = build(source);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (!is_kept)
    store_.store(key, context_->device().keeps_programs ? kKeptByDriver : binary_of(program.get()));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_kept) {
    ++statistics_.loaded;
    return program;
  }
  ++statistics_.built;
  statistics_.rejected += stored.is_rejected || stored.binary ? 1 : 0;
  statistics_.build_ms += took.count();
  return program;
}

/// Empty where the driver refuses the binary, for instance after an update that kept its version.
Handle<cl_program> ProgramCache::load(const Source& source, const std::string& binary) const {
  const cl_device_id device = context_->device().id;
  const size_t bytes = binary.size();
  const auto* const data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int status = CL_SUCCESS;
  cl_int binary_status = CL_SUCCESS;
  Handle<cl_program> program(api().clCreateProgramWithBinary(context_->get(), 1, &device, &bytes,
                                                             const_cast<const unsigned char**>(&data),
                                                             &binary_status, &status));
  if (status != CL_SUCCESS || binary_status != CL_SUCCESS) return {};
  if (api().clBuildProgram(program.get(), 1, &device, source.options.c_str(), nullptr, nullptr) != CL_SUCCESS)
    return {};
  const Handle<cl_kernel> kernel(api().clCreateKernel(program.get(), source.name.c_str(), &status));
  if (status != CL_SUCCESS) return {};
  return program;
}

Handle<cl_program> ProgramCache::build(const Source& source) const {
  const char* text = source.text.c_str();
  const size_t bytes = source.text.size();
  cl_int status = CL_SUCCESS;
  Handle<cl_program> program(api().clCreateProgramWithSource(context_->get(), 1, &text, &bytes, &status));
  if (status != CL_SUCCESS) fail_build(source, "clCreateProgramWithSource", status, "");
  const cl_device_id device = context_->device().id;
  status = api().clBuildProgram(program.get(), 1, &device, source.options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) fail_build(source, "clBuildProgram", status, build_log(program.get()));
  return program;
}

std::string ProgramCache::binary_of(cl_program program) const {
  // A borrowed context may have more devices; the driver writes binaries in their order, and none where it
  // gets null.
  cl_uint count = 0;
  if (api().clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, nullptr) != CL_SUCCESS)
    return "";
  std::vector<cl_device_id> devices(count);
  std::vector<size_t> sizes(count);
  if (api().clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), devices.data(),
                             nullptr) != CL_SUCCESS ||
      api().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof(size_t), sizes.data(),
                             nullptr) != CL_SUCCESS)
    return "";
  std::string binary;
  std::vector<char*> targets(count, nullptr);
  for (cl_uint i = 0; i < count; ++i) {
    if (devices[i] != context_->device().id) continue;
    binary.resize(sizes[i]);
    targets[i] = binary.data();
  }
  if (binary.empty() || api().clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof(char*),
                                               targets.data(), nullptr) != CL_SUCCESS)
    return "";
  return binary;
}

std::string ProgramCache::build_log(cl_program program) const {
  const cl_device_id device = context_->device().id;
  size_t bytes = 0;
  if (api().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS)
    return "";
  std::string log(bytes, '\0');
  if (bytes == 0 || api().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(),
                                                nullptr) != CL_SUCCESS)
    return "";
  return log.substr(0, log.find('\0'));
}

void ProgramCache::fail_build(const Source& source, const char* function, cl_int status,
                              const std::string& log) const {
  const std::string text =
      format_text("kernel %s: %s: %s (%d) on %s with options '%s'; build log:\n%s", source.name.c_str(),
                  function, name_of_status(status).c_str(), status, context_->device().key().c_str(),
                  source.options.c_str(), log.empty() ? "(empty)" : log.c_str());
  if (status == CL_BUILD_PROGRAM_FAILURE) throw BuildError(ErrorCode::device, text);
  throw Error(ErrorCode::device, text);
}

std::string cache_directory(const std::string& configured) {
  if (!configured.empty()) return configured;
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string named = variable("PHONEBIT_CACHE_DIR"); !named.empty()) return named;
  // The XDG specification has relative paths ignored.
  if (const std::string base = variable("XDG_CACHE_HOME"); base[0] == '/') return base + "/phonebit";
#if defined(_WIN32)
  constexpr const char* kHome = "USERPROFILE";
#else
  constexpr const char* kHome = "HOME";
#endif
  if (const std::string home = variable(kHome); !home.empty()) return home + "/.cache/phonebit";
  return "";
}

}  // namespace phonebit::engine::opencl
