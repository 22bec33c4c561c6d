// The AMX matrix unit: permission, and its instructions as inline assembly (gcc 12's intrinsics do not say
// that they read memory, and need flags that this folder must not be built with).
//
// Include inside an anonymous namespace, after simd/<isa>.h, <cpuid.h> and, on Linux,
// <sys/syscall.h> and <unistd.h>.
#pragma once

/// True when the processor has int8 tiles and the operating system lets this process use them.
static bool tile_unit_permitted() {
#if defined(__linux__)
  unsigned a, b, c, d;
  constexpr unsigned kTileAndInt8 = 3u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTileAndInt8) != kTileAndInt8) return false;
  // Linux hands out the tile state on request (kernel 5.16): ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

/// Tiles 0 to 6 of this thread become `rows` <= 16 rows of 64 bytes, tile 7 becomes 16.
static inline void configure_tiles(int rows) {
  struct alignas(64) {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {};
  config.palette = 1;
  for (int t = 0; t < 8; t++) {
    config.row_bytes[t] = 64;
    config.rows[t] = (uint8_t)(t == 7 ? 16 : rows);
  }
  asm volatile("ldtilecfg %0" : : "m"(config));
}

static inline void release_tiles() { asm volatile("tilerelease"); }

template <int kTile>
PHONEBIT_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

template <int kTile>
PHONEBIT_INLINE void tile_load(const void* from, size_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(kTile) : "memory");
}

template <int kTile>
PHONEBIT_INLINE void tile_store(void* to, size_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(kTile) : "memory");
}

/// sums[m][n] += sum over k of a[m][k] (u8) * b[k][n] (s8).
template <int kSums, int kA, int kB>
PHONEBIT_INLINE void tile_multiply_u8_s8() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}
