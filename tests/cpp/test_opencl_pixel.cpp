// The OpenCL library of Google's Pixel phones, by a stand-in: its functions are found in its own way.
//
//   test_opencl_pixel FAKE_LIBRARY
#include <cstdio>
#include <cstdlib>

#include "claims.h"
#include "opencl/cl_api.h"
#include "opencl/cl_functions.h"

int main(int argc, char** argv) {
  using namespace phonebit::engine::opencl;
  if (argc != 2) return std::fprintf(stderr, "usage: test_opencl_pixel FAKE_LIBRARY\n"), 2;
  ::unsetenv("PHONEBIT_OPENCL_LIBRARY");
  use_library(argv[1]);
  expect(is_available(), "a library that exports no function of OpenCL serves");
  expect(library_path() == argv[1], "the path is the library's: " + library_path());
  cl_uint count = 77;
  expect(api().clGetPlatformIDs(0, nullptr, &count) == CL_SUCCESS && count == 0, "its functions are called");
  if (failures == 0) std::printf("ok\n");
  return failures == 0 ? 0 : 1;
}
