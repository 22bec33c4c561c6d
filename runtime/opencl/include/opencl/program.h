// Programs and kernels of OpenCL.
#pragma once

#include <string>

#include "gpu/device.h"
#include "opencl/device.h"
#include "opencl/handle.h"

namespace phonebit::engine::opencl {

class Kernel final : public gpu::Kernel {
 public:
  Kernel(Handle<cl_kernel> owned, cl_device_id device) : kernel_(std::move(owned)), device_(device) {}

  cl_kernel get() const { return kernel_.get(); }
  void bind(unsigned position, int value) override { set(position, sizeof value, &value); }
  void bind(unsigned position, const gpu::DeviceMemory& memory) override;
  size_t max_group_size() const override;

 private:
  void set(unsigned position, size_t bytes, const void* value);

  Handle<cl_kernel> kernel_;
  cl_device_id device_;
};

inline cl_kernel object_of(const gpu::Kernel& kernel) { return static_cast<const Kernel&>(kernel).get(); }

/// "-cl-std=CL1.2 ..."; atomics need 2.0 or 3.0, as the device's version says.
std::string build_options(const ClDevice& device, gpu::Language language);

/// As gpu::Device::compile and load. `options`: build_options of the source's language.
std::unique_ptr<gpu::Program> compile_program(cl_context context, const ClDevice& device,
                                              const gpu::ProgramSource& source, const std::string& options);
std::unique_ptr<gpu::Program> load_program(cl_context context, const ClDevice& device,
                                           const gpu::ProgramSource& source, const std::string& options,
                                           const std::string& binary);

}  // namespace phonebit::engine::opencl
