// Programs of a context, from text and from binaries.
#include <vector>

#include "opencl/cl_functions.h"
#include "opencl/context.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {
namespace {

class Program final : public gpu::Program {
 public:
  /// `device` and `options` outlive it.
  Program(Handle<cl_program> owned, const ClDevice& device, const std::string& options)
      : program_(std::move(owned)), device_(device), options_(options) {}

  std::unique_ptr<gpu::Kernel> kernel(const gpu::ProgramSource& source) const override {
    cl_int status = CL_SUCCESS;
    Handle<cl_kernel> kernel(api().clCreateKernel(program_.get(), source.kernel.c_str(), &status));
    if (status != CL_SUCCESS) fail_to_build(source, "clCreateKernel", status);
    return std::make_unique<Kernel>(std::move(kernel), device_.id);
  }

  std::string binary() const override;

  cl_int build() const {
    return api().clBuildProgram(program_.get(), 1, &device_.id, options_.c_str(), nullptr, nullptr);
  }

  [[noreturn]] void fail_to_build(const gpu::ProgramSource& source, const char* function,
                                  cl_int status) const {
    const std::string log = build_log();
    const std::string text =
        format_text("kernel %s: %s: %s (%d) on %s with options '%s'; build log:\n%s", source.kernel.c_str(),
                    function, name_of_status(status).c_str(), status, device_.key().c_str(), options_.c_str(),
                    log.empty() ? "(empty)" : log.c_str());
    if (status == CL_BUILD_PROGRAM_FAILURE) throw gpu::BuildError(ErrorCode::device, text);
    throw Error(ErrorCode::device, text);
  }

 private:
  std::string build_log() const {
    size_t bytes = 0;
    if (!program_ || api().clGetProgramBuildInfo(program_.get(), device_.id, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                                                 &bytes) != CL_SUCCESS)
      return "";
    std::string log(bytes, '\0');
    if (bytes == 0 || api().clGetProgramBuildInfo(program_.get(), device_.id, CL_PROGRAM_BUILD_LOG, bytes,
                                                  log.data(), nullptr) != CL_SUCCESS)
      return "";
    return log.substr(0, log.find('\0'));
  }

  Handle<cl_program> program_;
  const ClDevice& device_;
  const std::string& options_;
};

/// A borrowed context may have more devices; the driver writes binaries in their order, and none where it gets
/// null.
std::string Program::binary() const {
  const auto info = [&](cl_uint name, size_t bytes, void* value) {
    return api().clGetProgramInfo(program_.get(), name, bytes, value, nullptr) == CL_SUCCESS;
  };
  cl_uint count = 0;
  if (!info(CL_PROGRAM_NUM_DEVICES, sizeof count, &count)) return "";
  std::vector<cl_device_id> devices(count);
  std::vector<size_t> sizes(count);
  if (!info(CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), devices.data()) ||
      !info(CL_PROGRAM_BINARY_SIZES, count * sizeof(size_t), sizes.data()))
    return "";
  std::string binary;
  std::vector<char*> targets(count, nullptr);
  for (cl_uint i = 0; i < count; ++i) {
    if (devices[i] != device_.id) continue;
    binary.resize(sizes[i]);
    targets[i] = binary.data();
  }
  if (binary.empty() || !info(CL_PROGRAM_BINARIES, count * sizeof(char*), targets.data())) return "";
  return binary;
}

}  // namespace

std::unique_ptr<gpu::Program> Context::compile(const gpu::ProgramSource& source) const {
  const char* text = source.text.c_str();
  const size_t bytes = source.text.size();
  cl_int status = CL_SUCCESS;
  auto program = std::make_unique<Program>(
      Handle<cl_program>(api().clCreateProgramWithSource(get(), 1, &text, &bytes, &status)), device_,
      build_options(source.language));
  if (status != CL_SUCCESS) program->fail_to_build(source, "clCreateProgramWithSource", status);
  status = program->build();
  if (status != CL_SUCCESS) program->fail_to_build(source, "clBuildProgram", status);
  return program;
}

std::unique_ptr<gpu::Program> Context::load(const gpu::ProgramSource& source,
                                            const std::string& binary) const {
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int status = CL_SUCCESS, binary_status = CL_SUCCESS;
  Handle<cl_program> made(
      api().clCreateProgramWithBinary(get(), 1, &device_.id, &bytes, &data, &binary_status, &status));
  if (status != CL_SUCCESS || binary_status != CL_SUCCESS) return nullptr;
  const cl_program object = made.get();
  auto program = std::make_unique<Program>(std::move(made), device_, build_options(source.language));
  if (program->build() != CL_SUCCESS) return nullptr;
  const Handle<cl_kernel> kernel(api().clCreateKernel(object, source.kernel.c_str(), &status));
  if (status != CL_SUCCESS) return nullptr;
  return program;
}

}  // namespace phonebit::engine::opencl
