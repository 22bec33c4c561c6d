#include "engine/make_backend.h"

#include "cpu/cpu_backend.h"
#include "engine/device_choice.h"
#include "engine/thread_choice.h"

namespace phonebit::engine {
namespace {

template <class Own>
Own* keep(ChosenBackend& chosen, std::unique_ptr<Own> backend) {
  Own* const own = backend.get();
  chosen.backend = std::move(backend);
  return own;
}

}  // namespace

ChosenBackend make_backend(const loader::Model& model, const Options& options) {
  const DeviceName device = parse_device(options.device);
  std::string label;
  std::shared_ptr<opencl::Context> context = make_context(options, device.opencl, &label);
  ChosenBackend chosen;
  if (context == nullptr)
    chosen.backend =
        std::make_unique<cpu::CpuBackend>(model, choose_isa(device.isa), options, make_pool(options));
  else if (device.has_cpu && !device.opencl.empty())
    chosen.coexec = keep(
        chosen, std::make_unique<coexec::CoexecBackend>(model, std::move(context), label,
                                                        choose_isa(device.isa), make_pool(options), options));
  else
    chosen.opencl = keep(chosen, std::make_unique<opencl::OpenClBackend>(
                                     model, std::move(context), label, make_copying_pool(options), options));
  return chosen;
}

}  // namespace phonebit::engine
