// What all x86 processors have in common.
#pragma once

#include "inline.h"

#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 warns about its own undefined-value operands in AVX-512 intrinsics (gcc bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifndef PHONEBIT_STREAM_AHEAD_BYTES
#define PHONEBIT_STREAM_AHEAD_BYTES 16384
#endif

namespace phonebit::engine::cpu {
namespace {

constexpr int kStreamAheadBytes = PHONEBIT_STREAM_AHEAD_BYTES;
constexpr bool kSmallCode = false;

}  // namespace
}  // namespace phonebit::engine::cpu
