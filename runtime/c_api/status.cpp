#include "status.h"

#include <exception>
#include <new>

#include "engine/network.h"
#include "types/error.h"

namespace phonebit::engine::c_api {
namespace {

constexpr const char* kNoMemory = "not enough memory";

/// A thread's last error. `shown` is `text`, or a constant where there was no memory for a text.
struct LastError {
  std::string text;
  const char* shown = "";
};

LastError& last_error() noexcept {
  static thread_local LastError error;
  return error;
}

phonebit_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::format:
      return PHONEBIT_ERROR_FORMAT;
    case ErrorCode::input:
      return PHONEBIT_ERROR_INPUT;
    case ErrorCode::device:
      return PHONEBIT_ERROR_DEVICE;
    case ErrorCode::cancelled:
      return PHONEBIT_CANCELLED;
    case ErrorCode::internal:
      break;
  }
  return PHONEBIT_ERROR_INTERNAL;
}

}  // namespace

void keep_error(const std::string& text) noexcept {
  LastError& error = last_error();
  try {
    error.text = text;
    error.shown = error.text.c_str();
  } catch (...) {
    error.shown = kNoMemory;
  }
}

phonebit_status keep_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    keep_error(error.what());
    return status_of(error.code());
  } catch (const std::bad_alloc&) {
    last_error().shown = kNoMemory;
    return PHONEBIT_ERROR_DEVICE;
  } catch (const std::exception& error) {
    last_error().shown = "a defect of PhoneBit; please report it";
    try {
      keep_error(std::string("a defect of PhoneBit, please report it: ") + error.what());
    } catch (...) {
    }
  } catch (...) {
    last_error().shown = "a defect of PhoneBit, please report it: an unknown exception";
  }
  return PHONEBIT_ERROR_INTERNAL;
}

}  // namespace phonebit::engine::c_api

using namespace phonebit::engine::c_api;

int32_t phonebit_c_api_version(void) { return PHONEBIT_C_API_VERSION; }

const char* phonebit_version(void) { return phonebit::engine::version(); }

const char* phonebit_status_name(phonebit_status status) {
  switch (status) {
    case PHONEBIT_OK:
      return "ok";
    case PHONEBIT_ERROR_FORMAT:
      return "format";
    case PHONEBIT_ERROR_INPUT:
      return "input";
    case PHONEBIT_ERROR_DEVICE:
      return "device";
    case PHONEBIT_ERROR_INTERNAL:
      return "internal";
    case PHONEBIT_CANCELLED:
      return "cancelled";
    case PHONEBIT_PENDING:
      return "pending";
    default:
      return "unknown";
  }
}

const char* phonebit_last_error(void) { return last_error().shown; }
