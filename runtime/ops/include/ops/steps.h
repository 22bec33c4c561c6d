// The epilogue operations of the file format ("steps"): what each part of the engine must know of one stands
// in its row, here and nowhere else. docs/format.md says what they compute.
#pragma once

#include <stdint.h>

namespace phonebit::engine::ops {

/// What a step computes from the value v and what its record refers to. Backends have code for each form.
enum class StepForm : uint8_t {
  scale_bias,  ///< v * constant_a + constant_b, of each channel
  add,         ///< v + tensor
  multiply,    ///< v * tensor
  clamp,       ///< v, limited to value_a … value_b
  prelu,       ///< v times a slope by its sign: constant_a, constant_b, of each channel or element
  count,       ///< how many of constant_a's numbers, some for each channel, v reaches
  function,    ///< a function of v alone, of bnn_kernels/common/functions.clh
};

}  // namespace phonebit::engine::ops

/// Numbers count from 1 and are never given to another step. STEP: its form. FUNCTION: the function's name in
/// functions.clh. Cost: rough nanoseconds for one element.
// clang-format off
//          number, kind,       form or function,   cost_ns
#define PHONEBIT_STEPS(STEP, FUNCTION)                \
  STEP    ( 1,      kScaleBias, scale_bias,         0.1f) \
  STEP    ( 2,      kAdd,       add,                0.1f) \
  STEP    ( 3,      kMultiply,  multiply,           0.1f) \
  STEP    ( 4,      kClamp,     clamp,              0.1f) \
  STEP    ( 5,      kPrelu,     prelu,              0.1f) \
  FUNCTION( 6,      kSigmoid,   sigmoid,            1.0f) \
  FUNCTION( 7,      kTanh,      hyperbolic_tangent, 1.0f) \
  FUNCTION( 8,      kRound,     nearest_integer,    0.1f) \
  FUNCTION( 9,      kGelu,      gelu,               1.5f) \
  FUNCTION(10,      kGeluTanh,  gelu_tanh,          1.2f) \
  FUNCTION(11,      kExp,       exponential,        0.6f) \
  FUNCTION(12,      kLog,       logarithm,          0.8f) \
  FUNCTION(13,      kSqrt,      square_root,        1.0f) \
  FUNCTION(14,      kReciprocal, reciprocal,        0.3f) \
  FUNCTION(15,      kElu,       elu,                1.3f) \
  FUNCTION(16,      kSoftplus,  softplus,           1.8f) \
  FUNCTION(17,      kMish,      mish,               1.0f) \
  STEP    (18,      kCount,     count,              0.3f)
// clang-format on

namespace phonebit::engine::format {

/// StepRecord::kind.
enum class StepKind : uint32_t {
#define PHONEBIT_NUMBER(number, kind, ...) kind = number,
  PHONEBIT_STEPS(PHONEBIT_NUMBER, PHONEBIT_NUMBER)
#undef PHONEBIT_NUMBER
};

}  // namespace phonebit::engine::format

namespace phonebit::engine::ops {

struct Step {
  format::StepKind kind;
  StepForm form;
  const char* function;  ///< null for other forms
  float cost_ns;

  /// Whether its record refers to a tensor.
  constexpr bool reads_tensor() const { return form == StepForm::add || form == StepForm::multiply; }
  /// Whether its record refers to constants.
  constexpr bool reads_constants() const {
    return form == StepForm::scale_bias || form == StepForm::prelu || form == StepForm::count;
  }
};

inline constexpr Step kSteps[] = {
#define PHONEBIT_STEP(number, kind, form, cost_ns) {format::StepKind::kind, StepForm::form, nullptr, cost_ns},
#define PHONEBIT_FUNCTION(number, kind, name, cost_ns) \
  {format::StepKind::kind, StepForm::function, #name, cost_ns},
    PHONEBIT_STEPS(PHONEBIT_STEP, PHONEBIT_FUNCTION)
#undef PHONEBIT_STEP
#undef PHONEBIT_FUNCTION
};
/// Thresholds of a count for one channel: 256 levels.
inline constexpr int64_t kMaxCounted = 255;

inline constexpr uint32_t kStepCount = sizeof kSteps / sizeof kSteps[0];

/// Whether StepRecord::kind is one of them.
constexpr bool is_step(uint32_t number) { return number - 1 < kStepCount; }

constexpr const Step& traits(format::StepKind kind) { return kSteps[static_cast<uint32_t>(kind) - 1]; }

constexpr bool steps_count_from_1() {
  for (uint32_t i = 0; i < kStepCount; ++i)
    if (static_cast<uint32_t>(kSteps[i].kind) != i + 1) return false;
  return true;
}
static_assert(steps_count_from_1(), "traits() finds a row by its number");

}  // namespace phonebit::engine::ops
