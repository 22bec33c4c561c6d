// u8 convolution on the AMX matrix unit. A tile of A is 16 neighbouring pixels x 64 bytes of their windows,
// loaded straight from the unrolled lines: its row stride is the distance of two windows. A tile of B is 64
// taps x 16 channels. Two tiles of A are multiplied by two of B (four accumulators), so that loads stay in the shadow
// of the products.
//
// Tiles never cross an output row: the last one of a row moves back to end with it, and pixels that another
// tile has finished are computed again but not stored again.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after u8_conv.inl and tile_unit.inl.
#pragma once

constexpr int kTilePixelRows = 16, kTileChannels = 16, kTileTaps = 64;
constexpr size_t kTileOfB = kTileTaps * kTileChannels;  // bytes
constexpr int kTilesOfB = kChannelBlock / kTileChannels;

static inline int tap_tiles(const ConvShape& s) {
  return (s.kernel_h * s.kernel_w * s.in_c + kTileTaps - 1) / kTileTaps;
}

// The unit multiplies by whole blocks of 64 channels. One vector of channels is less work for dot products of
// bytes: by the rates measured with 64 channels, a third for 3x3 windows, two thirds for 7x7.
static bool tiles_support(const ConvShape& s) {
  static const bool permitted = tile_unit_permitted();
  return permitted && s.out_w >= kTilePixelRows && s.out_c > kTileChannels;
}

static size_t tiles_packed_bytes(const ConvShape& s) {
  return u8_constants_bytes(s) + u8_limits_bytes(s) + kTileOfB * kTilesOfB * tap_tiles(s) * block_count(s);
}

// [block][tap tile][channel tile][16 groups of taps][16 channels][4 taps]
static void tiles_pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                               void* packed) {
  u8_pack_constants(s, weights, thresholds, packed);
  int8_t* tiles = (int8_t*)packed + u8_constants_bytes(s) + u8_limits_bytes(s);
  __builtin_memset(tiles, 0, kTileOfB * kTilesOfB * tap_tiles(s) * block_count(s));
  for_each_u8_weight(s, weights, [&](int channel, int tap, int weight) {
    const size_t block_and_tap = (size_t)(channel / kChannelBlock) * tap_tiles(s) + tap / kTileTaps;
    int8_t* tile = tiles + (block_and_tap * kTilesOfB + channel % kChannelBlock / kTileChannels) * kTileOfB;
    const int group = tap % kTileTaps / kTapGroup;
    tile[(group * kTileChannels + channel % kTileChannels) * kTapGroup + tap % kTapGroup] = (int8_t)weight;
  });
}

/// Sixteen pixels of one row, of which [begin, end) are wanted, and their sums.
struct PixelTile {
  alignas(64) int32_t sums[kTilePixelRows * kChannelBlock];
  int y, x, begin, end;
};

/// One tile of pixels times the block's channels.
PHONEBIT_INLINE void multiply_tile(const U8Block& work, const int8_t* b, int tap_tile_count,
                                   PixelTile& tile) {
  const uint8_t* a = work.window(tile.y, tile.x);
  tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
  for (int k = 0; k < tap_tile_count; k++, a += kTileTaps, b += kTilesOfB * kTileOfB) {
    tile_load<4>(a, work.pixel_bytes);
    tile_load<5>(b, 64);
    tile_multiply_u8_s8<0, 4, 5>();
    tile_load<6>(b + kTileOfB, 64);
    tile_multiply_u8_s8<1, 4, 6>();
    tile_load<7>(b + 2 * kTileOfB, 64);
    tile_multiply_u8_s8<2, 4, 7>();
    tile_load<5>(b + 3 * kTileOfB, 64);
    tile_multiply_u8_s8<3, 4, 5>();
  }
  constexpr size_t kStride = kChannelBlock * sizeof(int32_t);
  tile_store<0>(tile.sums, kStride);
  tile_store<1>(tile.sums + kTileChannels, kStride);
  tile_store<2>(tile.sums + 2 * kTileChannels, kStride);
  tile_store<3>(tile.sums + 3 * kTileChannels, kStride);
}

/// Turns the sums of one tile's wanted pixels into output.
static inline void finish_tile(const U8Block& work, const PixelTile& tile) {
  const int pixel = tile.y * work.s.out_w + tile.x + tile.begin;
  const int count = tile.end - tile.begin;
  // Copies: the compiler must assume that stores of results change what pointers lead to.
  const int32_t* sums = tile.sums + tile.begin * kChannelBlock;
  const int32_t* const row_limits = work.limits + work.constants.row_offsets()[tile.y];
  const int* const columns = work.constants.column_offsets(work.s) + tile.x + tile.begin;
  if (!work.sink.threshold_bits) {
    alignas(64) float values[kTilePixelRows * kChannelBlock];
    const int multiplier = work.constants.multiplier;
    for (int p = 0; p < count; p++, sums += kChannelBlock) {
      const int32_t* base = row_limits + columns[p];
      unroll<kTilesOfB>([&](int j) PHONEBIT_LAMBDA_INLINE {
        const IntVector sum = load<IntVector>(sums + j * kLanes);
        store(values + p * kChannelBlock + j * kLanes, u8_accumulator(sum, multiplier, base + j * kLanes));
      });
    }
    return work.finish(values, pixel, count);
  }
  uint64_t bits[kTilePixelRows];
  const bool whole = work.channels == kChannelBlock;
  const size_t step = whole ? 2 * work.pixel_words : 4;
  uint16_t* to = whole ? (uint16_t*)work.bits_of(pixel) : (uint16_t*)bits;
  for (int p = 0; p < count; p++, sums += kChannelBlock, to += step) {
    const int32_t* limits = row_limits + columns[p];
    unroll<kTilesOfB>([&](int j) PHONEBIT_LAMBDA_INLINE {
      to[j] = (uint16_t)u8_threshold_bits(load<IntVector>(sums + j * kLanes), limits + j * kLanes);
    });
  }
  if (whole) return;
  for (int p = 0; p < count; p++) {
    uint64_t pixel_bits;
    __builtin_memcpy(&pixel_bits, (const char*)bits + p * sizeof pixel_bits, sizeof pixel_bits);
    work.store_bits(pixel + p, pixel_bits);
  }
}

/// The tiles of a range of pixels, in order.
struct PixelTiles {
  const ConvShape& s;
  int pixel, end;

  bool next(PixelTile* tile) {
    if (pixel >= end) return false;
    tile->y = pixel / s.out_w;
    const int x = pixel % s.out_w;
    tile->x = x + kTilePixelRows <= s.out_w ? x : s.out_w - kTilePixelRows;
    const int row_left = s.out_w - x, left = end - pixel;
    int count = row_left < left ? row_left : left;
    if (count > kTilePixelRows) count = kTilePixelRows;
    tile->begin = x - tile->x;
    tile->end = tile->begin + count;
    pixel += count;
    return true;
  }
};

static void tiles_run(const ConvShape& s, const void* packed, const uint8_t*, const void* scratch,
                      const OutputRange& range, const AccumulatorSink& sink) {
  const int count = tap_tiles(s);
  const int8_t* tiles = (const int8_t*)packed + u8_constants_bytes(s) + u8_limits_bytes(s);
  // A tile's results wait while the unit works on the next one.
  PixelTile buffers[2];
  configure_tiles(kTilePixelRows);
  for (int block = range.block_begin; block < range.block_end; block++) {
    const U8Block work(s, packed, scratch, sink, block);
    const int8_t* tiles_of_b = tiles + (size_t)block * count * kTilesOfB * kTileOfB;
    PixelTiles order = {s, range.pixel_begin, range.pixel_end};
    int turn = 0;
    const PixelTile* waiting = nullptr;
    for (; order.next(&buffers[turn]); turn ^= 1) {
      multiply_tile(work, tiles_of_b, count, buffers[turn]);
      if (waiting) finish_tile(work, *waiting);
      waiting = &buffers[turn];
    }
    if (waiting) finish_tile(work, *waiting);
  }
  release_tiles();
}

constexpr U8ConvKernel kU8ConvTiles = {
    "u8conv_tiles",   tiles_support,   tiles_packed_bytes, tiles_pack_weights,
    u8_scratch_bytes, u8_prepare_rows, u8_prepare_input,   32,
    tiles_run,
};
