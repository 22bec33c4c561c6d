// Every kernel of portable/, made of the primitives of an instruction set.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "epilogue.inl"
#include "i8_products.inl"
#include "resampling.inl"
#include "u8_products.inl"
// These use the files above.
#include "i8_packing.inl"
#include "u8_packing.inl"
// These use the files above.
#include "f32_conv.inl"
#include "i8_conv.inl"
#include "u8_conv_direct.inl"
#include "u8_conv_planes.inl"
#include "value_kernels.inl"
