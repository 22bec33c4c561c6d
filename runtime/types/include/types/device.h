// What is known of instruction sets and of the kernels of GPUs.
#pragma once

#include <string>

namespace phonebit::engine {

/// One instruction set of this build.
struct IsaInfo {
  std::string name;
  std::string features;
  bool supported;  ///< by this machine
};

/// One kernel variant's self-test.
struct SelfTestResult {
  std::string op, choice;
  bool passed;
  std::string detail;
};

}  // namespace phonebit::engine
