// Subcases in loops.
#pragma once

#include <exception>

#include "doctest_strings.h"

/// The last of the exceptions of several bodies, thrown when all have run.
class LateFailure {
 public:
  template <class Body>
  void keep(const Body& body) {
    try {
      body();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

/// Runs body(item) as a subcase for each item. doctest learns of a subcase when it meets it, so the failure of
/// one waits until all were met.
template <class Items, class Name, class Body>
void for_each_subcase(const Items& items, const Name& name_of, const Body& body) {
  LateFailure failure;
  for (const auto& item : items) {
    SUBCASE(name_of(item)) {
      failure.keep([&] { body(item); });
    }
  }
  failure.rethrow();
}
