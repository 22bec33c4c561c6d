// The full tile of float32 convolutions for AArch64, in place of that of portable/f32_tile.inl.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/neon.h and kernel_types.h.
#pragma once

#include "portable/f32_tile.inl"

/// The full tile, four taps at a time, in an order that suits in-order cores: loads well before the multiply-adds, none
/// of which waits for another. Addresses without an index register leave Kryo's multiply pipes alone.
template <>
PHONEBIT_INLINE void add_to_tile<float, 5, 4>(const RunGeometry& runs, const Segment& segment,
                                              const void* weights, const float* const* pixels, float* sums,
                                              bool from_zero) {
  // Runs at equal distances: all, or those of a row.
  const bool is_even = runs.runs_per_row == 1;
  const size_t step = sizeof(float) * (is_even ? runs.row_step : runs.column_step);
  for (int run = segment.run_begin, end; run < segment.run_end; run = end) {
    end = is_even ? segment.run_end : run - run % runs.runs_per_row + runs.runs_per_row;
    if (end > segment.run_end) end = segment.run_end;
    size_t offset = sizeof(float) * (runs.offset(run) + segment.first), at;
    int count = end - run, left;
    const float *p0, *p1, *p2, *p3, *p4;
    // clang-format off
// v0-19 sums, pixel by pixel; v20-23, v29 and v30 weights; v24-28 one or four values of each pixel.
#define ZERO(V) "movi v" #V ".4s, #0\n"
#define SUMS(OP, P, A, B, C, D)                                                                            \
  "add %[at], %[sums], #256*" #P "\n"                                                                     \
  #OP " q" #A ", q" #B ", [%[at]]\n"                                                                      \
  #OP " q" #C ", q" #D ", [%[at], #32]\n"
#define ALL_SUMS(OP)                                                                                       \
  SUMS(OP, 0, 0, 1, 2, 3) SUMS(OP, 1, 4, 5, 6, 7) SUMS(OP, 2, 8, 9, 10, 11) SUMS(OP, 3, 12, 13, 14, 15)    \
  SUMS(OP, 4, 16, 17, 18, 19)
#define WEIGHT(V, AT) "ldr q" #V ", [%[weights], #" #AT "]\n"
#define PIXEL(P) "ldr %[p" #P "], [%[pixels], #8*" #P "]\n" "add %[p" #P "], %[p" #P "], %[offset]\n"
#define VALUE(SIZE, V, P) "ldr " #SIZE #V ", [%[p" #P "]]\n"
#define VALUES(SIZE) VALUE(SIZE, 24, 0) VALUE(SIZE, 25, 1) VALUE(SIZE, 26, 2) VALUE(SIZE, 27, 3) VALUE(SIZE, 28, 4)
#define NEXT(P, BYTES) "add %[p" #P "], %[p" #P "], #" #BYTES "\n"
#define ALL_NEXT(BYTES) NEXT(0, BYTES) NEXT(1, BYTES) NEXT(2, BYTES) NEXT(3, BYTES) NEXT(4, BYTES)
#define ADD(V, W, X, I) "fmla v" #V ".4s, v" #W ".4s, v" #X ".s[" #I "]\n"
#define ADDS(A, B, C, D, E, W, I) ADD(A, W, 24, I) ADD(B, W, 25, I) ADD(C, W, 26, I) ADD(D, W, 27, I) ADD(E, W, 28, I)
#define ADDS0(W, I) ADDS(0, 4, 8, 12, 16, W, I)
#define ADDS1(W, I) ADDS(1, 5, 9, 13, 17, W, I)
#define ADDS2(W, I) ADDS(2, 6, 10, 14, 18, W, I)
#define ADDS3(W, I) ADDS(3, 7, 11, 15, 19, W, I)
    asm volatile(
        "cbnz %w[zero], 1f\n"
        ALL_SUMS(ldp)
        "b 2f\n"
        "1:\n"
        ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7) ZERO(8) ZERO(9)
        ZERO(10) ZERO(11) ZERO(12) ZERO(13) ZERO(14) ZERO(15) ZERO(16) ZERO(17) ZERO(18) ZERO(19)
        "2:\n"
        PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3) PIXEL(4)
        "subs %w[left], %w[length], #4\n"
        "b.lt 4f\n"
        "3:\n"
        WEIGHT(20, 0) WEIGHT(21, 16) WEIGHT(22, 32) WEIGHT(23, 48) WEIGHT(29, 64) WEIGHT(30, 80)
        VALUES(q) ALL_NEXT(16)
        "add %[weights], %[weights], #256\n"
        "subs %w[left], %w[left], #4\n"
        ADDS0(20, 0) ADDS1(21, 0) ADDS2(22, 0) ADDS3(23, 0) ADDS0(29, 1) ADDS1(30, 1)
        WEIGHT(20, -160) WEIGHT(21, -144) WEIGHT(22, -128) WEIGHT(23, -112) WEIGHT(29, -96)
        ADDS2(20, 1) ADDS3(21, 1) ADDS0(22, 2) ADDS1(23, 2) ADDS2(29, 2)
        WEIGHT(20, -80) WEIGHT(21, -64) WEIGHT(22, -48) WEIGHT(23, -32) WEIGHT(29, -16)
        ADDS3(20, 2) ADDS0(21, 3) ADDS1(22, 3) ADDS2(23, 3) ADDS3(29, 3)
        "b.ge 3b\n"
        "4:\n"
        "adds %w[left], %w[left], #4\n"
        "b.eq 6f\n"
        "5:\n"
        WEIGHT(20, 0) WEIGHT(21, 16) WEIGHT(22, 32) WEIGHT(23, 48) VALUES(s) ALL_NEXT(4)
        "add %[weights], %[weights], #64\n"
        "subs %w[left], %w[left], #1\n"
        ADDS0(20, 0) ADDS1(21, 0) ADDS2(22, 0) ADDS3(23, 0)
        "b.ne 5b\n"
        "6:\n"
        "subs %w[count], %w[count], #1\n"
        "add %[offset], %[offset], %[step]\n"
        "b.ne 2b\n"
        ALL_SUMS(stp)
        : [weights] "+&r"(weights), [offset] "+&r"(offset), [count] "+&r"(count), [left] "=&r"(left),
          [at] "=&r"(at), [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3), [p4] "=&r"(p4)
        : [sums] "r"(sums), [pixels] "r"(pixels), [step] "r"(step), [length] "r"(segment.length),
          [zero] "r"((int)from_zero)
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
          "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
          "v27", "v28", "v29", "v30");
#undef ZERO
#undef SUMS
#undef ALL_SUMS
#undef WEIGHT
#undef PIXEL
#undef VALUE
#undef VALUES
#undef NEXT
#undef ALL_NEXT
#undef ADD
#undef ADDS
#undef ADDS0
#undef ADDS1
#undef ADDS2
#undef ADDS3
    // clang-format on
    from_zero = false;
  }
}
