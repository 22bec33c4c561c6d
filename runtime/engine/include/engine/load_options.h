// What loading a model needs besides the model: limits where the caller names none, errors that name the source.
#pragma once

#include <string>

#include "types/options.h"

namespace phonebit::engine {

/// The options with this machine's limits where they name none.
Options with_limits(Options options);

/// Throws the exception in flight again, as an Error that names the source of the model. Only inside a
/// handler.
[[noreturn]] void fail_to_load(const std::string& source);

}  // namespace phonebit::engine
