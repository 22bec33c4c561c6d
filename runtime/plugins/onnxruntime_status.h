// ONNX Runtime's statuses as exceptions, and the other way round.
#pragma once

#include <exception>

#include "onnxruntime_api.h"
#include "types/error.h"

namespace phonebit::engine::plugins {

/// A status of ONNX Runtime's own, on its way back to it.
struct Failure {
  OrtStatus* status;
};

/// Throws Failure unless a function of ONNX Runtime succeeded.
inline void check(OrtStatus* status) {
  if (status != nullptr) throw Failure{status};
}

/// Calls `action`; what it throws is the result, null if nothing.
template <class Action>
OrtStatus* status_of(const OrtApi& api, const Action& action) noexcept {
  try {
    action();
    return nullptr;
  } catch (const Failure& failure) {
    return failure.status;
  } catch (const Error& error) {
    return api.CreateStatus(error.code() == ErrorCode::input ? ORT_INVALID_ARGUMENT : ORT_EP_FAIL,
                            error.what());
  } catch (const std::exception& error) {
    return api.CreateStatus(ORT_EP_FAIL, error.what());
  }
}

}  // namespace phonebit::engine::plugins
