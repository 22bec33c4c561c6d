#include "images/row_reader.h"

#include <algorithm>

#include "images/resampling.h"

namespace phonebit::engine::images {
namespace {

// Luma Y' and chroma Cb, Cr are by definition
//   Y' = Kr R + Kg G + Kb B,  Cb = (B - Y') / (2 (1 - Kb)),  Cr = (R - Y') / (2 (1 - Kr)),  Kr + Kg + Kb = 1,
// so
//   R = Y' + 2 (1 - Kr) Cr,  B = Y' + 2 (1 - Kb) Cb,  G = (Y' - Kr R - Kb B) / Kg
//     = Y' - (2 Kb (1 - Kb) / Kg) Cb - (2 Kr (1 - Kr) / Kg) Cr.
// Chroma is stored + 128; of limited range, luma 16..235 and chroma 16..240 stand for what 0..255 does else.
//
// Luma and the three terms of chroma are 16-bit sums with 4 fractional bits, so that vector code has eight in
// a register: the luma factor has 7 (which is within 0.1 levels), those of chroma 16, rounded to 4
// afterwards.

constexpr int kSumBits = 4;
constexpr int kLumaBits = 7;
constexpr int kChromaBits = 16;

constexpr int32_t fixed(double factor, int bits) { return static_cast<int32_t>(factor * (1 << bits) + 0.5); }

struct YuvFactors {
  int32_t luma, black, red_of_cr, green_of_cb, green_of_cr, blue_of_cb;
};

constexpr YuvFactors yuv_factors(double kr, double kb, bool is_limited) {
  const double luma = is_limited ? 255.0 / 219.0 : 1.0;
  const double chroma = is_limited ? 255.0 / 224.0 : 1.0;
  const double kg = 1.0 - kr - kb;
  return {fixed(luma, kLumaBits),
          fixed(is_limited ? luma * 16.0 : 0.0, kSumBits),
          fixed(2.0 * (1.0 - kr) * chroma, kChromaBits),
          fixed(2.0 * kb * (1.0 - kb) / kg * chroma, kChromaBits),
          fixed(2.0 * kr * (1.0 - kr) / kg * chroma, kChromaBits),
          fixed(2.0 * (1.0 - kb) * chroma, kChromaBits)};
}

/// In the order of YuvColors.
constexpr YuvFactors kYuvFactors[] = {
    yuv_factors(0.299, 0.114, false),
    yuv_factors(0.299, 0.114, true),
    yuv_factors(0.2126, 0.0722, true),
};

/// A sum of luma and chroma as a level. In 16 bits to the end, or vector code would widen it.
uint8_t level(int16_t sum) {
  return static_cast<uint8_t>(std::clamp<int16_t>(static_cast<int16_t>(sum >> kSumBits), 0, 255));
}

/// A piece of a row that fits into the first level of cache.
constexpr int kPairs = 64;

/// What chroma adds to each pixel's red, green and blue, less black; the half that rounds levels is in it.
struct ChromaTerms {
  int16_t red[2 * kPairs], green[2 * kPairs], blue[2 * kPairs];
};

// The loops below become vector code where the step is known at compile time. Other steps are rare: small code
// in a phone's library.
#if defined(__clang__)
#define PHONEBIT_ANY_STEP __attribute__((minsize))
#define PHONEBIT_ONE_STEP inline __attribute__((always_inline))
#else
#define PHONEBIT_ANY_STEP
#define PHONEBIT_ONE_STEP inline
#endif

/// Each chroma sample for two pixels.
PHONEBIT_ONE_STEP void add_chroma(const YuvFactors& factors, const uint8_t* blue_chroma,
                                  const uint8_t* red_chroma, ptrdiff_t step, int pairs, ChromaTerms& terms) {
  constexpr int kShift = kChromaBits - kSumBits;
  const int32_t constant = (1 << (kShift - 1)) + (((1 << (kSumBits - 1)) - factors.black) * (1 << kShift));
  for (ptrdiff_t i = 0; i < pairs; ++i) {
    const int32_t cb = blue_chroma[i * step] - 128;
    const int32_t cr = red_chroma[i * step] - 128;
    const int32_t green = factors.green_of_cb * cb + factors.green_of_cr * cr;
    terms.red[2 * i] = terms.red[2 * i + 1] =
        static_cast<int16_t>((constant + factors.red_of_cr * cr) >> kShift);
    terms.green[2 * i] = terms.green[2 * i + 1] = static_cast<int16_t>((constant - green) >> kShift);
    terms.blue[2 * i] = terms.blue[2 * i + 1] =
        static_cast<int16_t>((constant + factors.blue_of_cb * cb) >> kShift);
  }
}

template <ptrdiff_t step>
void chroma_terms(const YuvFactors& factors, const uint8_t* blue_chroma, const uint8_t* red_chroma,
                  ptrdiff_t /*step*/, int pairs, ChromaTerms& terms) {
  add_chroma(factors, blue_chroma, red_chroma, step, pairs, terms);
}

PHONEBIT_ANY_STEP void chroma_terms_of_any(const YuvFactors& factors, const uint8_t* blue_chroma,
                                           const uint8_t* red_chroma, ptrdiff_t step, int pairs,
                                           ChromaTerms& terms) {
  add_chroma(factors, blue_chroma, red_chroma, step, pairs, terms);
}

/// Adds luma to the terms from `red`, `green` and `blue` on.
PHONEBIT_ONE_STEP void add_luma(uint16_t factor, const uint8_t* luma, ptrdiff_t step, const int16_t* red,
                                const int16_t* green, const int16_t* blue, int count,
                                uint8_t* __restrict pixels) {
  for (ptrdiff_t i = 0; i < count; ++i) {
    const auto product = static_cast<uint16_t>(luma[i * step] * factor);
    const auto y = static_cast<int16_t>(product >> (kLumaBits - kSumBits));
    pixels[i * kLanes] = level(static_cast<int16_t>(y + red[i]));
    pixels[i * kLanes + 1] = level(static_cast<int16_t>(y + green[i]));
    pixels[i * kLanes + 2] = level(static_cast<int16_t>(y + blue[i]));
    pixels[i * kLanes + 3] = 255;
  }
}

void add_luma_of_one(uint16_t factor, const uint8_t* luma, ptrdiff_t /*step*/, const int16_t* red,
                     const int16_t* green, const int16_t* blue, int count, uint8_t* __restrict pixels) {
  add_luma(factor, luma, 1, red, green, blue, count, pixels);
}

PHONEBIT_ANY_STEP void add_luma_of_any(uint16_t factor, const uint8_t* luma, ptrdiff_t step,
                                       const int16_t* red, const int16_t* green, const int16_t* blue,
                                       int count, uint8_t* __restrict pixels) {
  add_luma(factor, luma, step, red, green, blue, count, pixels);
}

const uint8_t* sample(const Samples& samples, int row, int column) {
  return samples.first + row * samples.row_step + column * samples.step;
}

void read_yuv(const ImageLayout& image, int y, int begin, int end, uint8_t* pixels) {
  const YuvFactors& factors = kYuvFactors[static_cast<int>(image.yuv)];
  const ptrdiff_t chroma_step = image.blue_chroma.step;
  const auto read_chroma = chroma_step == 1   ? &chroma_terms<1>
                           : chroma_step == 2 ? &chroma_terms<2>
                                              : &chroma_terms_of_any;
  const auto read_luma = image.luma.step == 1 ? &add_luma_of_one : &add_luma_of_any;
  ChromaTerms terms;
  for (int x = begin; x < end;) {
    const int pair = x / 2;
    const int piece_end = std::min(end, 2 * (pair + kPairs));
    read_chroma(factors, sample(image.blue_chroma, y / 2, pair), sample(image.red_chroma, y / 2, pair),
                chroma_step, (piece_end + 1) / 2 - pair, terms);
    const int skipped = x % 2;
    read_luma(static_cast<uint16_t>(factors.luma), sample(image.luma, y, x), image.luma.step,
              terms.red + skipped, terms.green + skipped, terms.blue + skipped, piece_end - x,
              pixels + static_cast<ptrdiff_t>(x - begin) * kLanes);
    x = piece_end;
  }
}

void read_packed(const ImageLayout& image, int y, int begin, int end, uint8_t* pixels) {
  const uint8_t* red = sample(image.red, y, begin);
  const uint8_t* green = sample(image.green, y, begin);
  const uint8_t* blue = sample(image.blue, y, begin);
  const ptrdiff_t step = image.red.step;
  for (ptrdiff_t i = 0; i < end - begin; ++i, pixels += kLanes) {
    pixels[0] = red[i * step];
    pixels[1] = green[i * step];
    pixels[2] = blue[i * step];
    pixels[3] = 255;
  }
}

void read_alpha(const ImageLayout& image, int y, int begin, int end, uint8_t* pixels) {
  const uint8_t* alpha = sample(image.alpha, y, begin);
  for (ptrdiff_t i = 0; i < end - begin; ++i) pixels[i * kLanes + 3] = alpha[i * image.alpha.step];
}

/// The weights 0.299, 0.587 and 0.114 in 16 bits, which sum to 1.
void make_gray(uint8_t* pixels, const uint8_t* end) {
  for (; pixels != end; pixels += kLanes) {
    const int32_t sum = 19595 * pixels[0] + 38470 * pixels[1] + 7471 * pixels[2];
    const auto gray = static_cast<uint8_t>((sum + 0x8000) >> 16);
    std::fill(pixels, pixels + kLanes, gray);
  }
}

/// Exactly round(level * alpha / 255), without a division.
uint8_t multiplied(int32_t level, int32_t alpha) {
  const int32_t product = level * alpha + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

void multiply_by_alpha(uint8_t* pixels, const uint8_t* end) {
  for (; pixels != end; pixels += kLanes) {
    for (int lane = 0; lane < 3; ++lane) pixels[lane] = multiplied(pixels[lane], pixels[3]);
  }
}

}  // namespace

void read_row(const ImageLayout& image, RowColors colors, int row, int begin, int end, uint8_t* pixels) {
  const int y = image.top + row;
  const int first = image.left + begin;
  const int last = image.left + end;
  const uint8_t* pixels_end = pixels + static_cast<ptrdiff_t>(end - begin) * kLanes;
  if (image.is_yuv)
    read_yuv(image, y, first, last, pixels);
  else
    read_packed(image, y, first, last, pixels);
  const bool has_alpha = colors == RowColors::rgba || colors == RowColors::rgba_multiplied;
  if (has_alpha && image.alpha.first != nullptr) read_alpha(image, y, first, last, pixels);
  if (colors == RowColors::rgba_multiplied) multiply_by_alpha(pixels, pixels_end);
  if (colors == RowColors::gray) make_gray(pixels, pixels_end);
}

}  // namespace phonebit::engine::images
