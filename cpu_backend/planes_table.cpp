#include "pair_table.h"

namespace phonebit::engine::cpu {

const PairTable kPlanesTable(2);

}  // namespace phonebit::engine::cpu
