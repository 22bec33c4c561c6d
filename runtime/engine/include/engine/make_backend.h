// Where a network runs.
#pragma once

#include <memory>

#include "coexec/coexec_backend.h"
#include "opencl/opencl_backend.h"

namespace phonebit::engine {

/// What executes a network, also by its own type where that can do more than every backend.
struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  opencl::OpenClBackend* opencl = nullptr;  ///< null: another one
  coexec::CoexecBackend* coexec = nullptr;
};

/// The CPU, the OpenCL device, or both, that the options ask for, prepared for the model, which must stay
/// where it is.
ChosenBackend make_backend(const loader::Model& model, const Options& options);

}  // namespace phonebit::engine
