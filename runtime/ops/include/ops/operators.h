// The operators of the file format: what each part of the engine must know of one stands in its row, here and
// nowhere else. docs/format.md says what they compute.
#pragma once

#include <cstdint>

#include "format/pbit_records.h"

namespace phonebit::engine::ops {

/// Element types, as a set.
using Types = uint8_t;
inline constexpr Types kNoType = 0;
inline constexpr Types kBits = 1u << static_cast<uint32_t>(format::DataType::kBit);
inline constexpr Types kBytes = 1u << static_cast<uint32_t>(format::DataType::kU8);
inline constexpr Types kFloats = 1u << static_cast<uint32_t>(format::DataType::kF32);
inline constexpr Types kAnyType = kBits | kBytes | kFloats;

constexpr bool has_type(Types types, format::DataType dtype) {
  return (types >> static_cast<uint32_t>(dtype) & 1u) != 0;
}

/// What the constant `weights` of an operator holds.
enum class Weights : uint8_t { none, filters, one_filter_a_channel, channel_indices };

/// Which rows of its operands that an operator reads for some rows of its output.
enum class Rows : uint8_t {
  window,  ///< those under its window
  same,    ///< the same rows
  padded,  ///< the same rows, less pad_top
  all,
};

/// Which channels of its operands that an operator reads for some channels of its output.
enum class Channels : uint8_t {
  all,
  same,  ///< the same channels
};

/// Between what the output may be cut, for two processors.
enum class Cuts : uint8_t {
  none,
  rows,
  rows_and_channels,  ///< channels of convolutions only where `groups` is 1
};

}  // namespace phonebit::engine::ops

/// Numbers count from 1 and are never given to another operator. Operands: the types that it reads, all of
/// one. Sums: for which of them the main value is an exact integer. Steps: for which of them it has an
/// epilogue; for others it stores its result as it is. Copies: whether its results are values of its operands
/// (or 0), unchanged.
// clang-format off
// number, kind, name, weights, operands, sums, steps, rows, channels, cuts, copies
#define PHONEBIT_OPERATORS(OPERATOR)                                                                                                                                                              \
  OPERATOR( 1, kBinaryConv2d,          "binary_conv2d",           Weights::filters,              kBits,            kBits,   kBits,    Rows::window, Channels::all,  Cuts::rows_and_channels, false) \
  OPERATOR( 2, kBinaryDepthwiseConv2d, "binary_depthwise_conv2d", Weights::one_filter_a_channel, kBits,            kBits,   kBits,    Rows::window, Channels::same, Cuts::rows,              false) \
  OPERATOR( 3, kConv2d,                "conv2d",                  Weights::filters,              kBytes | kFloats, kBytes,  kAnyType, Rows::window, Channels::all,  Cuts::rows_and_channels, false) \
  OPERATOR( 4, kMaxPool2d,             "max_pool2d",              Weights::none,                 kFloats | kBits,  kNoType, kFloats,  Rows::window, Channels::same, Cuts::rows_and_channels, true)  \
  OPERATOR( 5, kAveragePool2d,         "average_pool2d",          Weights::none,                 kFloats,          kNoType, kFloats,  Rows::window, Channels::same, Cuts::rows_and_channels, false) \
  OPERATOR( 6, kElementwise,           "elementwise",             Weights::none,                 kAnyType,         kNoType, kAnyType, Rows::same,   Channels::same, Cuts::rows_and_channels, true)  \
  OPERATOR( 7, kConcat,                "concat",                  Weights::none,                 kFloats | kBits,  kNoType, kNoType,  Rows::same,   Channels::all,  Cuts::rows,              true)  \
  OPERATOR( 8, kPad,                   "pad",                     Weights::none,                 kFloats,          kNoType, kNoType,  Rows::padded, Channels::same, Cuts::rows,              false) \
  OPERATOR( 9, kReshape,               "reshape",                 Weights::none,                 kFloats,          kNoType, kNoType,  Rows::all,    Channels::all,  Cuts::none,              true)  \
  OPERATOR(10, kSoftmax,               "softmax",                 Weights::none,                 kFloats,          kNoType, kNoType,  Rows::same,   Channels::all,  Cuts::rows,              false) \
  OPERATOR(11, kSelectChannels,        "select_channels",         Weights::channel_indices,      kFloats,          kNoType, kNoType,  Rows::same,   Channels::all,  Cuts::rows,              true)  \
  OPERATOR(12, kLogSoftmax,            "log_softmax",             Weights::none,                 kFloats,          kNoType, kNoType,  Rows::same,   Channels::all,  Cuts::rows,              false) \
  OPERATOR(13, kResizeBilinear,         "resize_bilinear",         Weights::none,                 kFloats,          kNoType, kNoType,  Rows::all,    Channels::same, Cuts::rows,              false) \
  OPERATOR(14, kResizeBilinearCorners,  "resize_bilinear_corners", Weights::none,                 kFloats,          kNoType, kNoType,  Rows::all,    Channels::same, Cuts::rows,              false) \
  OPERATOR(15, kResizeBicubic,          "resize_bicubic",          Weights::none,                 kFloats,          kNoType, kNoType,  Rows::all,    Channels::same, Cuts::rows,              false) \
  OPERATOR(16, kResizeBicubicCorners,   "resize_bicubic_corners",  Weights::none,                 kFloats,          kNoType, kNoType,  Rows::all,    Channels::same, Cuts::rows,              false) \
  OPERATOR(17, kMatmul,                 "matmul",                  Weights::none,                 kFloats,          kNoType, kNoType,  Rows::all,    Channels::all,  Cuts::rows,              false) \
  OPERATOR(18, kMatmulTransposed,       "matmul_transposed",       Weights::none,                 kFloats | kBits,  kNoType, kNoType,  Rows::all,    Channels::all,  Cuts::rows,              false) \
  OPERATOR(19, kBitPlanes,              "bit_planes",              Weights::none,                 kFloats,          kNoType, kNoType,  Rows::same,   Channels::same, Cuts::rows,              false)
// clang-format on

namespace phonebit::engine::format {

/// OpRecord::kind.
enum class OpKind : uint32_t {
#define PHONEBIT_NUMBER(number, kind, ...) kind = number,
  PHONEBIT_OPERATORS(PHONEBIT_NUMBER)
#undef PHONEBIT_NUMBER
};

}  // namespace phonebit::engine::format

namespace phonebit::engine::ops {

struct Operator {
  format::OpKind kind;
  const char* name;  ///< in messages and reports
  Weights weights;
  Types operands, sums, steps;
  Rows rows;
  Channels channels;
  Cuts cuts;
  bool copies;

  constexpr bool has_window() const { return rows == Rows::window; }
  /// Convolutions of bits: they read nothing else.
  constexpr bool is_binary() const { return operands == kBits; }
  constexpr bool takes_many_operands() const { return kind == format::OpKind::kConcat; }
  /// Matrix products of its two operands.
  constexpr bool is_product() const {
    return kind == format::OpKind::kMatmul || kind == format::OpKind::kMatmulTransposed;
  }
};

inline constexpr Operator kOperators[] = {
#define PHONEBIT_ROW(number, kind, ...) {format::OpKind::kind, __VA_ARGS__},
    PHONEBIT_OPERATORS(PHONEBIT_ROW)
#undef PHONEBIT_ROW
};

/// Of the bits outputs of BIT_PLANES: whole numbers of 8 bits.
inline constexpr uint32_t kMaxPlanes = 8;

inline constexpr uint32_t kOperatorCount = sizeof kOperators / sizeof kOperators[0];

/// Whether OpRecord::kind is one of them.
constexpr bool is_operator(uint32_t number) { return number - 1 < kOperatorCount; }

constexpr const Operator& traits(format::OpKind kind) { return kOperators[static_cast<uint32_t>(kind) - 1]; }

constexpr bool operators_count_from_1() {
  for (uint32_t i = 0; i < kOperatorCount; ++i)
    if (static_cast<uint32_t>(kOperators[i].kind) != i + 1) return false;
  return true;
}
static_assert(operators_count_from_1(), "traits() finds a row by its number");

}  // namespace phonebit::engine::ops
