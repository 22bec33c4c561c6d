// In place of the rest of this folder in a library without co-execution.
#include "coexec/pair_backend.h"
#include "types/fail.h"

namespace phonebit::coexec {

std::unique_ptr<Backend> make_backend(const loader::Model& /*model*/, const std::string& /*gpu*/,
                                      const std::string& /*isa*/, const Options& options) {
  fail_absent("co-execution", "PHONEBIT_COEXECUTION",
              format_text("or open the network on one device (got '%s')", options.device.c_str()));
}

}  // namespace phonebit::coexec
