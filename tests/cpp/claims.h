// Claims of native tests: what does not hold is printed and counted.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "types/error.h"

inline int failures = 0;

inline void expect(bool condition, const std::string& claim) {
  if (condition || failures++ > 20) return;
  std::fprintf(stderr, "FAIL %s\n", claim.c_str());
}

/// Whether `action` throws an Error of this code whose text has all `parts`.
template <class Action>
void expect_error(phonebit::engine::ErrorCode code, const std::vector<std::string>& parts,
                  const std::string& what, Action action) {
  try {
    action();
    expect(false, what + ": nothing was thrown");
  } catch (const phonebit::engine::Error& error) {
    expect(error.code() == code, what + ": the code of '" + error.what() + "'");
    for (const std::string& part : parts)
      expect(std::string(error.what()).find(part) != std::string::npos,
             what + ": '" + error.what() + "' says '" + part + "'");
  }
}
