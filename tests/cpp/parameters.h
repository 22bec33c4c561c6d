// Numbers that the environment may replace.
#pragma once

#include <cstdlib>

/// As in PHONEBIT_TEST_SEED=7 PHONEBIT_TEST_CASES=1000 build/tests/cpp/test_kernels.
inline unsigned parameter(const char* variable, unsigned otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 0)) : otherwise;
}

inline unsigned test_seed() { return parameter("PHONEBIT_TEST_SEED", 1); }
