#include "pair_table.h"

namespace phonebit::engine::cpu {

PairTable::PairTable(int factor) {
  constexpr uint8_t kBits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  for (int a = 0; a < 256; ++a) {
    for (int i = 0; i < 16; ++i) rows[a][i] = (uint8_t)(kBits[(a & 15) ^ i] + factor * kBits[(a >> 4) ^ i]);
  }
}

const PairTable kPairTable(16);

}  // namespace phonebit::engine::cpu
