// Where a network runs.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "types/options.h"

namespace phonebit::engine {

/// The CPU, the GPU, or both, that the options ask for, prepared for the model, which must stay where it is.
std::unique_ptr<Backend> make_backend(const loader::Model& model, const Options& options);

}  // namespace phonebit::engine
