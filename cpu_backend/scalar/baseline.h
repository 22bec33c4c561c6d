// What this folder is compiled for: what every processor of the kind has. On AArch64 portable/ without flags is what
// neon/ has already.
#pragma once

#include "kernel_types.h"
#if defined(__aarch64__)
#include "neon/shared.h"
#include "simd/neon.h"
#else
#if defined(__x86_64__)
#include "simd/sse2.h"
#else
#include "simd/scalar.h"
#endif

namespace phonebit::engine::cpu {
namespace {
#include "portable/epilogue.inl"
}  // namespace
}  // namespace phonebit::engine::cpu
#endif
