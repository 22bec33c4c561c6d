// The vectors of an instruction set, by the compiler's vector extensions: +, -, *, /, compares and selects are
// operators, so one source is compiled for all. What the extensions lack is a primitive, which each simd/<isa>.h
// defines or imports from generic.inl.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after inline.h and kVectorBytes.
#pragma once

constexpr int kLanes = kVectorBytes / 4;

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef int32_t IntVector __attribute__((vector_size(kVectorBytes)));
typedef uint32_t WordVector __attribute__((vector_size(kVectorBytes)));

/// Sums of a pixel's levels.
typedef int32_t PixelVector __attribute__((vector_size(16)));

/// The sums that a kernel keeps in registers: for so many pixels, so many vectors of channels each.
struct RegisterTile {
  int vectors, pixels;
};

/// A kFlushGroups that no window reaches.
constexpr int kU8NoFlush = 1 << 30;

/// A loop counter that is a constant in every iteration (see unroll).
template <int kIndex>
struct Index {
  constexpr operator int() const { return kIndex; }
};

/// body(0), body(1) … body(kCount - 1) as straight code. Arrays indexed by it become registers in the first
/// optimisation passes of gcc and clang, which a rolled loop does not guarantee. A body that takes an int is compiled
/// once, and one that takes auto kCount times: that is for constant expressions, and where gcc or clang makes better
/// code of it.
template <class Body, int... kIndex>
PHONEBIT_INLINE void unroll_each(const Body& body, std::integer_sequence<int, kIndex...>) {
  (body(Index<kIndex>{}), ...);
}
template <int kCount, class Body>
PHONEBIT_INLINE void unroll(const Body& body) {
  unroll_each(body, std::make_integer_sequence<int, kCount>{});
}

template <class Vector = FloatVector, class Element>
PHONEBIT_INLINE Vector load(const Element* from) {
  Vector v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class Vector, class Element>
PHONEBIT_INLINE void store(Element* to, Vector v) {
  __builtin_memcpy(to, &v, sizeof v);
}
