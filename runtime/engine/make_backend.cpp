#include "engine/make_backend.h"

#include "coexec/coexec_backend.h"
#include "cpu/cpu_backend.h"
#include "engine/device_choice.h"
#include "engine/device_name.h"
#include "engine/thread_choice.h"
#include "gpu/gpu_backend.h"

namespace phonebit::engine {

std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options) {
  const DeviceName name = parse_device(options.device);
  std::string label;
  std::shared_ptr<gpu::Device> device = open_device(options, name.gpu, &label);
  if (device == nullptr)
    return std::make_unique<cpu::CpuBackend>(model, choose_isa(name.isa), options, make_pool(options));
  if (name.has_cpu && !name.gpu.empty())
    return std::make_unique<coexec::CoexecBackend>(model, std::move(device), label, choose_isa(name.isa),
                                                   make_pool(options), options);
  return std::make_unique<gpu::GpuBackend>(model, std::move(device), label, make_copying_pool(options),
                                           options);
}

}  // namespace phonebit::engine
