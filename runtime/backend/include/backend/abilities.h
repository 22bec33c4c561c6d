// What some backends can do beyond what all can.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "types/cancellation.h"
#include "types/layer.h"
#include "types/network_state.h"
#include "types/options.h"
#include "types/plan.h"
#include "types/tensor.h"

namespace phonebit::engine {

/// Of a network on a GPU; Network's functions of the same names tell more.
class GpuAbilities {
 public:
  virtual void forward_on_device(const std::vector<DeviceBuffer>& inputs,
                                 const std::vector<DeviceBuffer>& outputs, int batch) = 0;
  virtual std::vector<std::string> candidates(size_t index) const = 0;
  virtual std::vector<KernelProgram> programs(size_t index) const = 0;
  virtual double measure_choice(size_t index, const std::string& choice, int batch, int repeats,
                                bool* is_equal, const Cancellation& cancellation) = 0;
  virtual std::string tuning_line(size_t index, const std::string& choice) const = 0;
  virtual StartupInfo startup() const = 0;
  virtual GpuHandles handles() const = 0;

 protected:
  ~GpuAbilities() = default;
};

/// Of a network on a GPU and a CPU together.
class CoexecAbilities {
 public:
  virtual LayerTimes measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                   const std::optional<OutputPart>& gpu, int repeats,
                                   const Cancellation& cancellation) = 0;
  virtual PassTimes measure_pass(int repeats, const Cancellation& cancellation) = 0;
  virtual std::vector<DispatchInfo> dispatch(size_t index, const OutputPart& gpu) = 0;
  virtual std::string plan_key() const = 0;
  virtual const ExecutionPlan& plan() const = 0;
  virtual CoexecInfo info() const = 0;

 protected:
  ~CoexecAbilities() = default;
};

}  // namespace phonebit::engine
