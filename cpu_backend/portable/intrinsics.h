// Include this at file scope before any portable/*.inl: the .inl files sit inside an anonymous namespace,
// where no system header may be opened.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
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
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define PHONEBIT_INLINE inline __attribute__((always_inline))
// Lambdas that index register tiles: the tile stays in registers only if every access is inlined.
#define PHONEBIT_LAMBDA_INLINE __attribute__((always_inline))
#define PHONEBIT_NOINLINE static __attribute__((noinline))
/// For what runs once a layer or a group of tiles, or hardly ever: small code in a phone's library.
#if defined(__clang__) && (defined(__aarch64__) || defined(__arm__))
#define PHONEBIT_RARE __attribute__((minsize))
#else
#define PHONEBIT_RARE
#endif

/// Keeps a pointer or number in a register of its own, where gcc would collect several in a vector register.
#define PHONEBIT_SCALAR(value) asm("" : "+r"(value))

/// A comment in the assembly beside an inner loop, from which benchmarks/cpu_kernels/neon_mca.py predicts its
/// speed: "begin NAME N MAC" where a pass begins, "end NAME" where it ends. Nothing in ordinary builds.
#if defined(PHONEBIT_MCA_MARKERS)
#define PHONEBIT_MCA_MARKER(text) asm volatile("// " text)
#else
#define PHONEBIT_MCA_MARKER(text) (void)0
#endif
