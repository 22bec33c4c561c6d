// What Linux says about an Arm processor. Named as the kernel's bits are; other systems answer no.
#pragma once

#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define PHONEBIT_HAS_HWCAP(type, bit) ((getauxval(type) & (bit)) != 0)
#else
#define PHONEBIT_HAS_HWCAP(type, bit) false
#endif
