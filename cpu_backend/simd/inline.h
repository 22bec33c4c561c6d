// How kernels are compiled, on every instruction set.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <utility>

#define PHONEBIT_INLINE inline __attribute__((always_inline))
// Lambdas that index register tiles: the tile stays in registers only if every access is inlined.
#define PHONEBIT_LAMBDA_INLINE __attribute__((always_inline))
#define PHONEBIT_NOINLINE static __attribute__((noinline))
/// For what runs once per layer or per group of tiles, or hardly ever: small code in a phone's library.
#if defined(__clang__) && (defined(__aarch64__) || defined(__arm__))
#define PHONEBIT_RARE __attribute__((minsize))
#else
#define PHONEBIT_RARE
#endif

/// Keeps a pointer or number in its own register, where gcc would collect several in a vector register.
#define PHONEBIT_SCALAR(value) asm("" : "+r"(value))

/// A comment in the assembly at an inner loop, from which benchmarks/cpu_kernels/neon_mca.py predicts its
/// speed: "begin NAME N MAC" where an iteration begins, "end NAME" where it ends. Nothing in ordinary builds.
#if defined(PHONEBIT_MCA_MARKERS)
#define PHONEBIT_MCA_MARKER(text) asm volatile("// " text)
#else
#define PHONEBIT_MCA_MARKER(text) (void)0
#endif
