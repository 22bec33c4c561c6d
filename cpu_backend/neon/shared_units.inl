// Sums of positions for binary_conv_shared_sums.cpp; included within its anonymous namespace.

/// Adds units of 16 positions to a sum of eight digits, or of 16 in either half, and moves `list` after them. In
/// assembly for the in-order cores, which run it as it stands; the orders were found by hill climbing on llvm-mca's
/// cycles. Software pipeline: a unit's last carries are added with the next unit, whose list has been read. Two units'
/// carries of 16 are added at once; an odd number of units begins with the second.
template <bool kHalves>
PHONEBIT_INLINE void sum_units(const uint8_t* planes, const uint16_t*& list, int64_t units, Plane& s1,
                               Plane& s2, Plane& s4, Plane& s8, Plane& s16, Plane& s32, Plane& s64,
                               Plane& s128) {
  // clang-format off
// v0-15 planes of positions and, in their place, carries; v26-29 carries; x3-16 offsets of planes.
#define E(D, A, B) "eor " D ".16b, " A ".16b, " B ".16b\n"
#define A(D, A, B) "and " D ".16b, " A ".16b, " B ".16b\n"
#define B(D, A, B) "bit " D ".16b, " A ".16b, " B ".16b\n"
#define I(R, AT) "ldrh w" #R ", [%[list], #" #AT "]\n"
#define L(V, R) "ldr q" #V ", [%[planes], x" #R "]\n"
// Halves: four offsets in a register.
#define Q(R, AT) "ldr x" #R ", [%[list], #" #AT "]\n"
#define C(D, R, BIT) "ubfx x" #D ", x" #R ", #" #BIT ", #16\n"
#define P(R) "add x" #R ", %[planes], x" #R "\n"
#define D(V, R) "ldr d" #V ", [%[planes], x" #R "]\n"
#define H(V, R) "ld1 {v" #V ".d}[1], [x" #R "]\n"
#define FIRST_UNIT \
      L(0, 3) L(1, 4) I(3, 24) E("v8", "v10", "v8") L(2, 5) L(4, 7) E("v12", "v28", "v12") L(5, 8) L(3, 6) \
      B("v10", "%[s2]", "v8") E("%[s2]", "%[s2]", "v8") L(8, 9) E("v1", "v0", "v1") E("v3", "v2", "v3") L(9, 10) \
      I(4, 26) B("v28", "%[s2]", "v12") B("v0", "%[s1]", "v1") I(10, 38) E("%[s1]", "%[s1]", "v1") I(6, 30) \
      E("v10", "v28", "v10") E("%[s2]", "%[s2]", "v12") L(7, 12) E("v5", "v4", "v5") B("v2", "%[s1]", "v3") \
      E("%[s1]", "%[s1]", "v3") B("v28", "%[s4]", "v10") I(7, 32) L(12, 3) L(11, 14) E("v9", "v8", "v9") \
      B("v4", "%[s1]", "v5") E("v6", "v28", "v6") I(5, 28) E("v0", "v2", "v0") E("%[s4]", "%[s4]", "v10") \
      E("%[s1]", "%[s1]", "v5") L(15, 6) B("v28", "%[s8]", "v6") I(8, 34) L(10, 13) E("%[s8]", "%[s8]", "v6") \
      L(6, 11) I(12, 42) E("v29", "%[s16]", "v28") B("v2", "%[s2]", "v0") L(13, 4) I(13, 48) E("v7", "v6", "v7") \
      B("v28", "v14", "v29") I(3, 44) E("v11", "v10", "v11") E("%[s2]", "%[s2]", "v0") B("v6", "%[s1]", "v7") \
      E("%[s1]", "%[s1]", "v7") A("v27", "%[s32]", "v28") E("v13", "v12", "v13") I(14, 50) E("%[s16]", "v29", "v14") \
      E("v4", "v6", "v4") B("v8", "%[s1]", "v9") E("%[s1]", "%[s1]", "v9") A("v26", "%[s64]", "v27") L(14, 5) \
      I(4, 46) B("v6", "%[s2]", "v4") E("%[s2]", "%[s2]", "v4") B("v10", "%[s1]", "v11") \
      E("%[s32]", "%[s32]", "v28") E("%[s1]", "%[s1]", "v11") E("v15", "v14", "v15") I(11, 40) E("v2", "v6", "v2") \
      E("%[s64]", "%[s64]", "v27") I(9, 36) B("v12", "%[s1]", "v13") E("%[s1]", "%[s1]", "v13") \
      E("%[s128]", "%[s128]", "v26") I(5, 52) B("v6", "%[s4]", "v2") I(6, 54) E("%[s4]", "%[s4]", "v2") \
      B("v14", "%[s1]", "v15") E("%[s1]", "%[s1]", "v15")
#define SECOND_UNIT \
      L(2, 5) E("v8", "v10", "v8") L(1, 4) I(4, 58) L(0, 3) E("v12", "v14", "v12") L(3, 6) B("v10", "%[s2]", "v8") \
      E("%[s2]", "%[s2]", "v8") L(4, 7) E("v1", "v0", "v1") L(5, 8) I(8, 66) E("v3", "v2", "v3") \
      B("v14", "%[s2]", "v12") I(6, 62) B("v0", "%[s1]", "v1") E("%[s1]", "%[s1]", "v1") E("%[s2]", "%[s2]", "v12") \
      L(8, 9) E("v10", "v14", "v10") L(9, 10) E("v5", "v4", "v5") B("v2", "%[s1]", "v3") I(3, 56) \
      E("%[s1]", "%[s1]", "v3") B("v14", "%[s4]", "v10") E("%[s4]", "%[s4]", "v10") L(7, 12) I(7, 64) L(12, 3) \
      E("v6", "v14", "v6") L(11, 14) I(5, 60) L(10, 13) E("v0", "v2", "v0") B("v4", "%[s1]", "v5") \
      B("v14", "%[s8]", "v6") E("%[s8]", "%[s8]", "v6") L(6, 11) I(12, 74) E("%[s1]", "%[s1]", "v5") I(14, 82) \
      E("v7", "v6", "v7") L(15, 6) I(10, 70) E("v9", "v8", "v9") B("v2", "%[s2]", "v0") E("%[s2]", "%[s2]", "v0") \
      B("v6", "%[s1]", "v7") E("%[s1]", "%[s1]", "v7") L(28, 5) L(13, 4) I(3, 76) E("v11", "v10", "v11") \
      E("v4", "v6", "v4") B("v8", "%[s1]", "v9") E("%[s1]", "%[s1]", "v9") I(4, 78) E("v13", "v12", "v13") \
      E("v15", "v28", "v15") B("v6", "%[s2]", "v4") I(11, 72) B("v10", "%[s1]", "v11") E("%[s1]", "%[s1]", "v11") \
      I(6, 86) E("%[s2]", "%[s2]", "v4") E("v2", "v6", "v2") I(13, 80) B("v12", "%[s1]", "v13") \
      E("%[s1]", "%[s1]", "v13") B("v6", "%[s4]", "v2") E("%[s4]", "%[s4]", "v2") I(9, 68) B("v28", "%[s1]", "v15") \
      E("%[s1]", "%[s1]", "v15") I(5, 84)
#define UNIT_OF_HALVES \
      C(11, 3, 0) C(15, 4, 16) C(12, 3, 16) C(13, 3, 32) C(16, 4, 32) C(14, 4, 0) C(3, 3, 48) D(0, 11) P(3) D(1, 13) \
      P(12) E("v8", "v10", "v8") E("v12", "v14", "v12") H(1, 3) P(15) H(0, 12) C(11, 5, 0) C(13, 5, 32) C(12, 5, 16) \
      D(2, 14) D(3, 16) B("v10", "%[s2]", "v8") E("v1", "v0", "v1") E("%[s2]", "%[s2]", "v8") H(2, 15) C(4, 4, 48) \
      C(5, 5, 48) P(5) Q(3, 64) P(4) D(4, 11) P(12) B("v14", "%[s2]", "v12") H(3, 4) D(5, 13) B("v0", "%[s1]", "v1") \
      H(4, 12) E("%[s1]", "%[s1]", "v1") E("v10", "v14", "v10") E("v3", "v2", "v3") H(5, 5) C(14, 6, 0) C(11, 7, 0) \
      C(15, 6, 16) C(16, 6, 32) C(13, 7, 32) B("v14", "%[s4]", "v10") D(9, 13) B("v2", "%[s1]", "v3") \
      E("v5", "v4", "v5") E("%[s2]", "%[s2]", "v12") E("%[s1]", "%[s1]", "v3") E("v6", "v14", "v6") D(8, 11) \
      E("%[s4]", "%[s4]", "v10") D(7, 16) E("v0", "v2", "v0") B("v4", "%[s1]", "v5") B("v14", "%[s8]", "v6") \
      E("%[s8]", "%[s8]", "v6") E("%[s1]", "%[s1]", "v5") D(6, 14) P(15) C(13, 9, 32) C(11, 9, 0) C(12, 7, 16) P(12) \
      C(6, 6, 48) C(16, 8, 32) C(7, 7, 48) C(14, 8, 0) H(6, 15) H(8, 12) P(6) C(15, 8, 16) C(12, 9, 16) C(9, 9, 48) \
      P(7) C(8, 8, 48) H(7, 6) P(15) D(12, 11) P(8) D(10, 14) D(11, 16) H(9, 7) E("v7", "v6", "v7") \
      B("v2", "%[s2]", "v0") H(11, 8) H(10, 15) E("v9", "v8", "v9") A("v26", "%[s16]", "v14") B("v6", "%[s1]", "v7") \
      E("%[s1]", "%[s1]", "v7") E("v11", "v10", "v11") Q(4, 72) P(12) Q(5, 80) D(13, 13) E("v4", "v6", "v4") \
      E("%[s16]", "%[s16]", "v14") B("v8", "%[s1]", "v9") E("%[s1]", "%[s1]", "v9") E("%[s2]", "%[s2]", "v0") \
      Q(8, 104) P(9) C(15, 10, 16) P(15) C(16, 10, 32) C(14, 10, 0) C(10, 10, 48) H(13, 9) P(10) H(12, 12) D(15, 16) \
      B("v6", "%[s2]", "v4") B("v10", "%[s1]", "v11") D(14, 14) E("%[s1]", "%[s1]", "v11") E("v13", "v12", "v13") \
      A("v27", "%[s32]", "v26") H(15, 10) E("%[s32]", "%[s32]", "v26") H(14, 15) E("v2", "v6", "v2") \
      E("%[s2]", "%[s2]", "v4") Q(7, 96) A("v26", "%[s64]", "v27") E("v15", "v14", "v15") Q(6, 88) \
      B("v12", "%[s1]", "v13") E("%[s1]", "%[s1]", "v13") B("v6", "%[s4]", "v2") E("%[s64]", "%[s64]", "v27") \
      Q(10, 120) E("%[s4]", "%[s4]", "v2") E("%[s128]", "%[s128]", "v26") B("v14", "%[s1]", "v15") \
      E("%[s1]", "%[s1]", "v15") Q(9, 112)
// What is left of the last unit, whose carry C becomes one of 16.
#define LATE(C) \
      E("v8", "v10", "v8") B("v10", "%[s2]", "v8") E("%[s2]", "%[s2]", "v8") E("v12", C, "v12") \
      B(C, "%[s2]", "v12") E("%[s2]", "%[s2]", "v12") E("v10", C, "v10") B(C, "%[s4]", "v10") \
      E("%[s4]", "%[s4]", "v10") E("v6", C, "v6") B(C, "%[s8]", "v6") E("%[s8]", "%[s8]", "v6")
#define SUM(FIRST, LOOP, LAST) \
  asm volatile( \
      "movi v6.16b, #0\n" "movi v8.16b, #0\n" "movi v10.16b, #0\n" "movi v12.16b, #0\n" "movi v14.16b, #0\n" \
      FIRST LOOP LAST \
      A("v26", "%[s64]", "v27") \
      E("%[s64]", "%[s64]", "v27") E("%[s128]", "%[s128]", "v26") \
      : [list] "+&r"(list), [units] "+&r"(units), [s1] "+&w"(s1), [s2] "+&w"(s2), [s4] "+&w"(s4), [s8] "+&w"(s8), \
        [s16] "+&w"(s16), [s32] "+&w"(s32), [s64] "+&w"(s64), [s128] "+&w"(s128) \
      : [planes] "r"(planes) \
      : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v26", "v27", "v28", "v29", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", \
        "x15", "x16")
  if constexpr (kHalves) {
    SUM(Q(3, 0) Q(4, 8) Q(5, 16) Q(6, 24) Q(7, 32) Q(8, 40) Q(9, 48) Q(10, 56),
        "1:\n" UNIT_OF_HALVES
        "subs %w[units], %w[units], #1\n"
        "add %[list], %[list], #64\n"
        "b.ne 1b\n",
        LATE("v14") A("v26", "%[s16]", "v14") E("%[s16]", "%[s16]", "v14") A("v27", "%[s32]", "v26")
        E("%[s32]", "%[s32]", "v26"));
  } else {
    SUM(I(3, 0) I(4, 2) I(5, 4) I(6, 6) I(7, 8) I(8, 10) I(9, 12) I(10, 14) I(11, 16) I(12, 18) I(13, 20) I(14, 22),
        "movi v28.16b, #0\n"
        "tbz %w[units], #0, 1f\n"
        "sub %[list], %[list], #32\n"
        "b 2f\n"
        "1:\n"
        "// begin shared_sums 16384 MAC\n"
        FIRST_UNIT
        "2:\n"
        SECOND_UNIT
        "subs %w[units], %w[units], #2\n"
        "add %[list], %[list], #64\n"
        "// end shared_sums\n"
        "b.gt 1b\n",
        LATE("v28") E("v29", "%[s16]", "v28") B("v28", "v14", "v29") E("%[s16]", "v29", "v14")
        A("v27", "%[s32]", "v28") E("%[s32]", "%[s32]", "v28"));
  }
#undef LATE
#undef SUM
#undef FIRST_UNIT
#undef SECOND_UNIT
#undef UNIT_OF_HALVES
#undef E
#undef A
#undef B
#undef I
#undef L
#undef Q
#undef C
#undef P
#undef D
#undef H
  // clang-format on
}

/// A total of eight digits is added to a sum of kUsualDigits; returns the carry. In assembly for the same reasons.
constexpr int kUsualDigits = 12;
PHONEBIT_INLINE Plane add_total(Plane* sum, Plane s1, Plane s2, Plane s4, Plane s8, Plane s16, Plane s32,
                                Plane s64, Plane s128) {
  Plane carry;
  // clang-format off
// v0-11 the sum's digits and, in their place, carries; v12-15 and v26-29 new digits.
#define E(D, A, B) "eor " D ".16b, " A ".16b, " B ".16b\n"
#define A(D, A, B) "and " D ".16b, " A ".16b, " B ".16b\n"
#define B(D, A, B) "bit " D ".16b, " A ".16b, " B ".16b\n"
#define L(V, AT) "ldr q" #V ", [%[sum], #" #AT "]\n"
#define S(V, W, AT) "stp q" #V ", q" #W ", [%[sum], #" #AT "]\n"
  asm volatile(
      L(0, 0) L(1, 16) L(6, 96) L(2, 32) E("v12", "v0", "%[s1]") E("v13", "v1", "%[s2]") A("v0", "v0", "%[s1]")
      L(4, 64) L(5, 80) L(3, 48) E("v14", "v2", "%[s4]") B("v1", "v0", "v13") L(11, 176) E("v26", "v4", "%[s16]")
      E("v15", "v3", "%[s8]") L(7, 112) B("v2", "v1", "v14") E("v13", "v13", "v0") L(9, 144) L(10, 160)
      E("v27", "v5", "%[s32]") B("v3", "v2", "v15") B("v4", "v3", "v26") E("v15", "v15", "v2") S(12, 13, 0)
      E("v28", "v6", "%[s64]") B("v5", "v4", "v27") E("v26", "v26", "v3") E("v14", "v14", "v1")
      E("v29", "v7", "%[s128]") E("v27", "v27", "v4") L(8, 128) B("v6", "v5", "v28") S(14, 15, 32) S(26, 27, 64)
      E("v28", "v28", "v5") B("v7", "v6", "v29") E("v29", "v29", "v6") S(28, 29, 96) E("v12", "v8", "v7")
      A("v8", "v8", "v7") E("v13", "v9", "v8") A("v9", "v9", "v8") S(12, 13, 128) E("v14", "v10", "v9")
      A("v10", "v10", "v9") E("v15", "v11", "v10") A("%[carry]", "v11", "v10") S(14, 15, 160)
      : [carry] "=&w"(carry)
      : [sum] "r"(sum), [s1] "w"(s1), [s2] "w"(s2), [s4] "w"(s4), [s8] "w"(s8), [s16] "w"(s16), [s32] "w"(s32),
        [s64] "w"(s64), [s128] "w"(s128)
      : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
        "v26", "v27", "v28", "v29");
#undef E
#undef A
#undef B
#undef L
#undef S
  // clang-format on
  return carry;
}
