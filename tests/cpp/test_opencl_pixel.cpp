// The OpenCL library of Google's Pixel phones, by a stand-in: its functions are found in its own way.
#include <cstdlib>

#include "doctest_strings.h"
#include "opencl/cl_api.h"
#include "opencl/cl_functions.h"

TEST_CASE("a library that exports no function of OpenCL serves") {
  using namespace phonebit::engine::opencl;
  ::unsetenv("PHONEBIT_OPENCL_LIBRARY");
  use_library(FAKE_LIBRARY);
  CHECK(is_available());
  CHECK(library_path() == FAKE_LIBRARY);
  cl_uint count = 77;
  CHECK(api().clGetPlatformIDs(0, nullptr, &count) == CL_SUCCESS);
  CHECK(count == 0);
}
