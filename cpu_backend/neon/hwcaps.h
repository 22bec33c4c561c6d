// What the system says about an Arm processor. Linux: bits, named as the kernel names them. macOS: numbers by name.
// Other systems answer no.
#pragma once

#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define PHONEBIT_HAS_HWCAP(type, bit, macos_name) ((getauxval(type) & (bit)) != 0)
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#define PHONEBIT_HAS_HWCAP(type, bit, macos_name) phonebit_macos_says(macos_name)
static inline bool phonebit_macos_says(const char* name) {
  int value = 0;
  size_t bytes = sizeof value;
  return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value != 0;
}
#else
#define PHONEBIT_HAS_HWCAP(type, bit, macos_name) false
#endif
