// What a network on a GPU and a CPU together can do beyond every other, and the only door to coexec/: a
// library without it (PHONEBIT_COEXECUTION=OFF) has absent.cpp behind this header.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace phonebit::coexec {

class PairBackend : public Backend {
 public:
  PairBackend* pair() final { return this; }

  // Network's functions of the same names.
  virtual LayerTimes measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                                   const std::optional<OutputPart>& gpu, int repeats) = 0;
  virtual std::vector<DispatchInfo> dispatch(size_t index, const OutputPart& gpu) = 0;
  virtual std::string plan_key() const = 0;
  virtual const ExecutionPlan& plan() const = 0;
  virtual CoexecInfo info() const = 0;
};

/// The OpenCL device `gpu` ("gpu", "gpu:1") and the CPU's instruction set `isa` (empty: the best), prepared
/// for the model, which must stay where it is. Throws as make_context, choose_isa and CoexecBackend;
/// Error(device) in a library without co-execution.
std::unique_ptr<Backend> make_backend(const loader::Model& model, const std::string& gpu,
                                      const std::string& isa, const Options& options);

}  // namespace phonebit::coexec
