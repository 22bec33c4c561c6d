// The functions of bnn_kernels/common/functions.clh on float vectors, and the one that a step of an epilogue
// names.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#define VALUE FloatVector
#define WHOLE IntVector
#define CONSTANT(number) broadcast(number)
#define AS_VALUE(bits) ((FloatVector)(bits))
#define AS_WHOLE(value) ((IntVector)(value))
#define TO_VALUE(integer) __builtin_convertvector(integer, FloatVector)
#define LARGER(a, b) maximum(a, b)
#define SMALLER(a, b) minimum(a, b)
#define FUNCTION(name) __attribute__((unused)) PHONEBIT_NOINLINE FloatVector name(FloatVector x)
#include "common/functions.clh"
#undef VALUE
#undef WHOLE
#undef CONSTANT
#undef AS_VALUE
#undef AS_WHOLE
#undef TO_VALUE
#undef LARGER
#undef SMALLER
#undef FUNCTION

/// The function that a step of this kind applies; null for steps of other forms.
PHONEBIT_NOINLINE auto function_of(StepKind kind) -> FloatVector (*)(FloatVector) {
  switch (kind) {
#define PHONEBIT_FUNCTION(number, step, function, ...) \
  case StepKind::step:                                 \
    return function;
#define PHONEBIT_OTHER(number, step, ...) \
  case StepKind::step:                    \
    break;
    PHONEBIT_STEPS(PHONEBIT_OTHER, PHONEBIT_FUNCTION)
#undef PHONEBIT_FUNCTION
#undef PHONEBIT_OTHER
  }
  return nullptr;
}
