// Whether tests of OpenCL can run.
#pragma once

#include "doctest_strings.h"
#include "engine/devices.h"

/// Where it is false, its message makes ctest report the test as skipped (doctest.cmake).
inline bool has_opencl_device() {
  if (!phonebit::engine::gpu_devices("opencl").empty()) return true;
  MESSAGE("skipped: no OpenCL device: ", phonebit::engine::gpu_error("opencl"));
  return false;
}
