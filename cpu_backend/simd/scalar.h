// Any processor, by the compiler's vectors of 16 bytes alone. Every primitive is the generic one.
#pragma once

#include "inline.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 16, kRegisters = 16, kStreamAheadBytes = 0;
constexpr bool kSmallCode = true;
#include "generic.inl"
constexpr RegisterTile kF32Tile = {2, 6}, kU8Tile = {2, 2}, kByteTile = {2, 2};
using namespace generic;
#include "bits_by_lane.inl"

}  // namespace
}  // namespace phonebit::engine::cpu
