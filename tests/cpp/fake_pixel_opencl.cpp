// Stands in for libOpenCL-pixel.so: it exports nothing of OpenCL and finds functions only once it was
// enabled.
#include <cstdint>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

bool is_enabled = false;

int32_t no_platforms(uint32_t, void*, uint32_t* count) {
  *count = 0;
  return 0;
}

int32_t other_function() { return -30; }

}  // namespace

EXPORT void enableOpenCL() { is_enabled = true; }

EXPORT void* loadOpenCLPointer(const char* name) {
  if (!is_enabled || std::strncmp(name, "cl", 2) != 0) return nullptr;
  if (std::strcmp(name, "clGetPlatformIDs") == 0) return reinterpret_cast<void*>(&no_platforms);
  return reinterpret_cast<void*>(&other_function);
}
