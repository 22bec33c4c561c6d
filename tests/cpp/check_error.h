// Errors by their code and parts of their text.
#pragma once

#include <string>
#include <vector>

#include "doctest_strings.h"
#include "types/error.h"

/// `action` throws an Error of this code whose text has all `parts`. `what` says in a failure what was tried.
template <class Action>
void check_error(phonebit::engine::ErrorCode code, const std::vector<std::string>& parts,
                 const std::string& what, Action action) {
  INFO(what);
  try {
    action();
    FAIL_CHECK("nothing was thrown");
  } catch (const phonebit::engine::Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
    for (const std::string& part : parts) CHECK(error.what() == doctest::Contains(part.c_str()));
  }
}
