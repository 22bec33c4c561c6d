// Slicing-by-16: the byte-wise form is
//   crc = table[0][(crc ^ byte) & 255] ^ (crc >> 8)
// CRC is linear over GF(2), so the effect of a byte that is k bytes further from the end is another table,
//   table[k][b] = table[k-1][b] advanced by one zero byte,
// and 16 bytes become 16 independent look-ups joined by xor instead of a chain of 16.
#include "loader/crc32.h"

#include <array>
#include <cstring>

namespace phonebit::engine::loader {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;  // bit-reversed 0x04C11DB7
constexpr int kSlices = 16;

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = tables[slice - 1][byte];
      tables[slice][byte] = tables[0][previous & 255] ^ (previous >> 8);
    }
  }
  return tables;
}

/// The four look-ups of one little-endian word whose last byte is `after` bytes before the end of the slice.
uint32_t look_up(const Tables& tables, uint32_t word, size_t after) {
  return tables[after + 3][word & 255] ^ tables[after + 2][(word >> 8) & 255] ^
         tables[after + 1][(word >> 16) & 255] ^ tables[after][word >> 24];
}

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
  // At the first call, since phones' libraries have no room for 16 KB of them.
  static const Tables tables = make_tables();
  const auto* bytes = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; size >= kSlices; size -= kSlices, bytes += kSlices) {
    uint32_t word[4];
    std::memcpy(word, bytes, sizeof word);
    crc = look_up(tables, word[0] ^ crc, 12) ^ look_up(tables, word[1], 8) ^ look_up(tables, word[2], 4) ^
          look_up(tables, word[3], 0);
  }
  for (; size > 0; --size, ++bytes) crc = tables[0][(crc ^ *bytes) & 255] ^ (crc >> 8);
  return ~crc;
}

}  // namespace phonebit::engine::loader
