// The ValueKernels table of one instruction set; the kernels are in the files included here.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "binary_depthwise.inl"
#include "bit_pool.inl"
#include "f32_conv.inl"
#include "pixel_values.inl"
#include "window_values.inl"

constexpr ValueKernels kValueKernels = {
    kFuses,         kF32Convolution,  kF16Convolution,  kW8Convolution, binary_depthwise,
    depthwise_f32,  max_pool_f32,     average_pool_f32, max_pool_bits,  elementwise_f32,
    elementwise_u8, elementwise_bits, softmax<false>,   softmax<true>,  bit_planes,
};
