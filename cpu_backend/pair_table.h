// Counts of the lookup kernels (avx2/pair_table.inl).
#pragma once

#include <stdint.h>

namespace phonebit::engine::cpu {

/// For 4 bits of each of two pixels, and 4 bits of a filter: how many differ, of the second pixel times `factor`.
/// Filled when the library is loaded, which makes it 4 KB smaller. Not by code of an instruction set: this one runs
/// everywhere.
struct PairTable {
  alignas(64) uint8_t rows[256][16];
  explicit PairTable(int factor);
};
/// Fields of 4 bits: the counts are split again.
extern const PairTable kPairTable;
/// Of the planes of one pixel's levels, which count once and twice.
extern const PairTable kPlanesTable;

}  // namespace phonebit::engine::cpu
