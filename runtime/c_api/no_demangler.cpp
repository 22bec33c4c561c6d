// Phones' shared library carries the C++ library within itself. Of that the terminate handler alone asks for
// the demangler, a tenth of the whole file, so that an exception nobody catches is logged by its readable
// name. Here it gets none, as the standard permits, and logs the mangled one. The version script keeps this
// name from everybody else.
#include <cstddef>

extern "C" char* __cxa_demangle(const char* /*mangled*/, char* /*buffer*/, size_t* /*length*/, int* status) {
  constexpr int kOutOfMemory = -1;
  if (status != nullptr) *status = kOutOfMemory;
  return nullptr;
}
