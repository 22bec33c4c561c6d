// The part of this folder that runs in streaming mode.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace phonebit::engine::cpu::sme2 {

/// Words that loads may reach after what they need: four vectors of 2048 bits, less a block.
constexpr int kSlackWords = 192;

/// An output pixel.
struct MapPixel {
  int32_t position;  // in the map, counted from the first position of the job
  int32_t entries;   // those of its border class
};

/// d = sum over steps of popcount(x xor w) of some pixels and channels, and what becomes of it.
struct OuterProducts {
  const uint32_t* map;    // word of step 0 and position 0
  const uint32_t* steps;  // of each step: what it adds to a position
  int64_t step_count;
  const uint32_t* weights;  // [block][step][kChannelBlock], of all blocks, *inverted*
  const int32_t* entries;   // [block][border class][kChannelBlock]: limits (bit = d < limit), or bases
  int64_t block_entries;
  int channel_begin, channel_end;  // multiples of 32; one begins a block
  const MapPixel* pixels;          // in ascending order; the last one is followed by one at INT32_MAX
  int positions;                   // last pixel's position + 1
  uint8_t* bits;                   // of channel 0 of the first pixel; null: values
  size_t bits_stride;              // bytes from pixel to pixel
  float* values;                   // base - 2 d: [pixel][kChannelBlock], from channel_begin on; of one block
};

void compute(const OuterProducts& job);

}  // namespace phonebit::engine::cpu::sme2
