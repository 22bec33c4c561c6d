// Packed bits of a part that ends inside a word of the output.
#pragma once

#include <cstring>

#include "cpu/part_slots.h"

namespace phonebit::engine::cpu {

/// Kernels write whole words, and clear the bits behind their last channel. Where other parts' channels are
/// there, they write to scratch memory instead, from which only the part's own bits are copied.
class RaggedBits {
 public:
  RaggedBits(const BuildContext& context, const loader::Op& op, const OutputPart& part) {
    const loader::Tensor& out = context.model.output(op);
    const bool is_ragged = part.channel_end % 32 != 0 && part.channel_end < out.channels;
    if (!is_ragged || op.record.bits_output < 0) return;
    channels_ = part.channel_end - part.channel_begin;
    output_words_ = static_cast<size_t>(out.words());
    bind_output(context, op.record.bits_output, part, &output_);
    const int pixels = pixels_of(context, op, part);
    pixels_ =
        make_split(pixels, 1, copy_ns(2.0 * pixels * words(channels_) * sizeof(uint32_t)), context.threads);
  }
  RaggedBits(const RaggedBits&) = delete;
  RaggedBits& operator=(const RaggedBits&) = delete;

  size_t scratch_bytes() const {
    return static_cast<size_t>(pixels_.total) * static_cast<size_t>(words(channels_)) * sizeof(uint32_t);
  }
  void set_scratch(std::byte* scratch) { words_ = reinterpret_cast<uint32_t*>(scratch); }

  /// Where the kernel writes instead; 0 and null stay what they are.
  void redirect(uint32_t*& bits, int& pixel_words) const {
    if (channels_ == 0 || bits == nullptr) return;
    bits = words_;
    pixel_words = words(channels_);
  }

  /// Phase after the kernel's.
  int parts() const { return channels_ > 0 ? pixels_.parts : 0; }
  void copy(int part) const {
    const auto step = static_cast<size_t>(words(channels_));
    const auto whole_bytes = static_cast<size_t>(channels_ / 8);
    const int mask = (1 << channels_ % 8) - 1;
    for (int pixel = pixels_.begin(part); pixel < pixels_.end(part); ++pixel) {
      const auto index = static_cast<size_t>(pixel);
      const auto* from = reinterpret_cast<const unsigned char*>(words_ + index * step);
      auto* to = reinterpret_cast<unsigned char*>(output_ + index * output_words_);
      std::memcpy(to, from, whole_bytes);
      if (mask != 0)
        to[whole_bytes] = static_cast<unsigned char>((to[whole_bytes] & ~mask) | (from[whole_bytes] & mask));
    }
  }

 private:
  int channels_ = 0;  // 0: the kernel writes to the tensor itself
  uint32_t* output_ = nullptr;
  size_t output_words_ = 0;
  uint32_t* words_ = nullptr;
  Split pixels_;
};

}  // namespace phonebit::engine::cpu
