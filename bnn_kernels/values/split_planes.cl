// @kernel   split_planes   the windows of a u8 map as bit-planes, for conv2d_u8_planes
// @math     bit t % 32 of planes[pixel][t / 32][i] = bit i of tap t = (ky * KERNEL_W + kx) * IN_C + c; 0 for padded taps
// @args     int first_pixel, int end_pixel, uchar* input, uint* planes
// @out      uint [end_pixel][WINDOW_WORDS][8], WINDOW_WORDS = ceil(KERNEL_H*KERNEL_W*IN_C / 32); where PADDED and
//           INPUT_ADD != 0 then uint [end_pixel][WINDOW_WORDS]: bit t % 32 is 1 for taps inside the map
// @geometry global = (roundup(pixels * WINDOW_WORDS, GROUP_SIZE)), local = (GROUP_SIZE)
// @tune     GROUP_SIZE {32,64,128,256} = 64
// @requires GROUPS == 1
// @ref      CONV2D of u8   @source PhoneBit III-B, eq. 2
//
// Windows are unrolled: an image's 3 channels would leave 29 bits of a word unused, its 3x3 windows leave 5. They
// overlap, so a window that moves by less than its size is written more than once; it is read once for every tile of
// filters.
#include "common/dialect.clh"
#include "common/window.clh"

#define TAPS (KERNEL_H * KERNEL_W * IN_C)
#define WINDOW_WORDS ((TAPS + 31) / 32)

__kernel void split_planes(
    int first_pixel, int end_pixel, __global const uchar* restrict input, __global uint* restrict planes) {
  const int id = first_pixel * WINDOW_WORDS + (int)get_global_id(0);
  const int pixel = QUOTIENT(id, WINDOW_WORDS), word = REMAINDER(id, WINDOW_WORDS);
  if (pixel >= end_pixel) return;
  const int y = PIXEL_Y(pixel), x = PIXEL_X(pixel);
  const int image = PIXEL_IMAGE(pixel) * (IN_H * IN_W * IN_C);

  const int first = word * 32, tap = QUOTIENT(first, IN_C);
  int c = REMAINDER(first, IN_C), kx = REMAINDER(tap, KERNEL_W), ky = QUOTIENT(tap, KERNEL_W);
  uint4 low_planes = (uint4)(0), high_planes = (uint4)(0);
  uint mask = 0;
  for (int t0 = 0; t0 < 32; t0 += 8) {
    // Eight taps as the rows of an 8x8 bit matrix: four bytes in `low`, four in `high`.
    uint low = 0, high = 0;
#pragma unroll
    for (int t = 0; t < 8; t++) {
      const int in_y = TAP_Y(y, ky), in_x = TAP_X(x, kx);
      if (ky < KERNEL_H && INSIDE(in_y, in_x)) {
        const uint value = input[image + (in_y * IN_W + in_x) * IN_C + c];
        if (t < 4) {
          low |= value << (8 * t);
        } else {
          high |= value << (8 * t - 32);
        }
        mask |= 1u << (t0 + t);
      }
      if (++c == IN_C) {
        c = 0;
        if (++kx == KERNEL_W) kx = 0, ky++;
      }
    }
    // Its transpose, by swapping ever larger off-diagonal blocks: byte i of the result is plane i (Hacker's Delight
    // 7-3).
    uint t = (low ^ (low >> 7)) & 0x00aa00aau;
    low ^= t ^ (t << 7);
    t = (high ^ (high >> 7)) & 0x00aa00aau;
    high ^= t ^ (t << 7);
    t = (low ^ (low >> 14)) & 0x0000ccccu;
    low ^= t ^ (t << 14);
    t = (high ^ (high >> 14)) & 0x0000ccccu;
    high ^= t ^ (t << 14);
    t = (low ^ (high << 4)) & 0xf0f0f0f0u;
    low ^= t;
    high ^= t >> 4;
    const uint4 byte = VECTOR_4(uint, 0, 8, 16, 24);
    low_planes |= ((uint4)(low) >> byte & (uint4)(0xff)) << (uint4)(t0);
    high_planes |= ((uint4)(high) >> byte & (uint4)(0xff)) << (uint4)(t0);
  }
  STORE_4(uint, planes, 8 * id, low_planes);
  STORE_4(uint, planes, 8 * id + 4, high_planes);
  if (PADDED && INPUT_ADD != 0) planes[8 * end_pixel * WINDOW_WORDS + id] = mask;
}
