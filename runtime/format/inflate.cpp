#include "format/inflate.h"

#include <algorithm>
#include <iterator>

#include "types/fail.h"

namespace phonebit::engine::format {
namespace {

constexpr int kLongestCode = 15;
constexpr int kEndOfBlock = 256;

/// What a symbol stands for: `base` plus the number in its extra bits (3.2.5).
struct Range {
  uint16_t base;
  uint8_t extra_bits;
};
constexpr Range kLengths[] = {{3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},  {8, 0},  {9, 0},  {10, 0},
                              {11, 1},  {13, 1},  {15, 1},  {17, 1},  {19, 2}, {23, 2}, {27, 2}, {31, 2},
                              {35, 3},  {43, 3},  {51, 3},  {59, 3},  {67, 4}, {83, 4}, {99, 4}, {115, 4},
                              {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr Range kDistances[] = {{1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
                                {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
                                {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
                                {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
                                {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};

/// Codes are in order of their lengths, and of their symbols where lengths are equal (3.2.2), so how many
/// have each length tells them all.
struct Code {
  int counts[kLongestCode + 1] = {};
  uint16_t symbols[288] = {};
};

class Inflater {
 public:
  Inflater(const uint8_t* stream, size_t stream_size, size_t size)
      : stream_(stream), stream_size_(stream_size), size_(size) {}

  std::string run() {
    out_.reserve(size_);
    for (bool is_last = false; !is_last;) {
      is_last = bits(1) == 1;
      const int type = bits(2);
      if (type == 0)
        stored_block();
      else if (type == 1)
        fixed_block();
      else if (type == 2)
        dynamic_block();
      else
        broken("a block has the reserved type");
    }
    if (at_ != stream_size_) broken("the last block ends before the stream");
    if (out_.size() != size_) broken("the last block ends before the text");
    return std::move(out_);
  }

 private:
  [[noreturn]] void broken(const char* what) const {
    fail(ErrorCode::internal,
         "%s, at byte %zu of %zu compressed ones and %zu of %zu expanded ones; this library is damaged, "
         "install it again",
         what, at_, stream_size_, out_.size(), size_);
  }

  /// The next `count` <= 13 bits, the first one lowest.
  int bits(int count) {
    while (held_count_ < count) {
      if (at_ == stream_size_) broken("the stream ends within a block");
      held_ |= uint32_t{stream_[at_++]} << held_count_;
      held_count_ += 8;
    }
    const uint32_t value = held_ & ((1u << count) - 1);
    held_ >>= count;
    held_count_ -= count;
    return static_cast<int>(value);
  }

  Code make_code(const uint8_t* lengths, int symbol_count) const {
    Code code;
    for (int i = 0; i < symbol_count; ++i) ++code.counts[lengths[i]];
    code.counts[0] = 0;  // symbols that do not occur
    int offsets[kLongestCode + 2] = {}, left = 1;
    for (int length = 1; length <= kLongestCode; ++length) {
      left = 2 * left - code.counts[length];
      if (left < 0) broken("a code has more symbols than its lengths allow");
      offsets[length + 1] = offsets[length] + code.counts[length];
    }
    for (int i = 0; i < symbol_count; ++i) {
      if (lengths[i] != 0) code.symbols[offsets[lengths[i]]++] = static_cast<uint16_t>(i);
    }
    return code;
  }

  /// Reads bits, the highest first, until they are below the codes of their length that are in use.
  int symbol(const Code& code) {
    int value = 0, first = 0, index = 0;
    for (int length = 1; length <= kLongestCode; ++length) {
      value |= bits(1);
      if (value - first < code.counts[length]) return code.symbols[index + value - first];
      index += code.counts[length];
      first = 2 * (first + code.counts[length]);
      value *= 2;
    }
    broken("bits that are no code");
  }

  int value_in(const Range& range) { return range.base + bits(range.extra_bits); }

  void expect_room(int count) const {
    if (size_ - out_.size() < static_cast<size_t>(count)) broken("there is more text than expected");
  }

  void stored_block() {
    held_ = 0;  // it starts at a whole byte
    held_count_ = 0;
    const int low = bits(8), count = low | bits(8) << 8, low_inverse = bits(8);
    if (count != (~(low_inverse | bits(8) << 8) & 0xffff))
      broken("a stored block's size differs from its copy");
    if (stream_size_ - at_ < static_cast<size_t>(count)) broken("the stream ends within a block");
    expect_room(count);
    out_.append(reinterpret_cast<const char*>(stream_ + at_), static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
  }

  void fixed_block() {
    uint8_t lengths[288], distance_lengths[std::size(kDistances)];
    std::fill(lengths, lengths + 144, uint8_t{8});
    std::fill(lengths + 144, lengths + 256, uint8_t{9});
    std::fill(lengths + 256, lengths + 280, uint8_t{7});
    std::fill(lengths + 280, lengths + 288, uint8_t{8});
    std::fill(std::begin(distance_lengths), std::end(distance_lengths), uint8_t{5});
    coded_block(make_code(lengths, 288), make_code(distance_lengths, std::size(kDistances)));
  }

  /// Lengths of both codes stand before the block, themselves coded (3.2.7).
  void dynamic_block() {
    static constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const int literals = 257 + bits(5), distances = 1 + bits(5), used = 4 + bits(4);
    if (literals > 286 || distances > int{std::size(kDistances)}) broken("a code has too many symbols");
    uint8_t lengths[286 + std::size(kDistances)] = {};
    for (int i = 0; i < used; ++i) lengths[kOrder[i]] = static_cast<uint8_t>(bits(3));
    const Code code = make_code(lengths, std::size(kOrder));
    for (int i = 0; i < literals + distances;) {
      const int length = symbol(code);
      int count = 1;
      if (length == 16 && i == 0) broken("a length repeats the one before the first");
      if (length == 16) count = 3 + bits(2);
      if (length == 17) count = 3 + bits(3);
      if (length == 18) count = 11 + bits(7);
      if (count > literals + distances - i) broken("there are more lengths than symbols");
      const uint8_t value = length < 16    ? static_cast<uint8_t>(length)
                            : length == 16 ? lengths[i - 1]
                                           : uint8_t{0};
      std::fill_n(lengths + i, count, value);
      i += count;
    }
    coded_block(make_code(lengths, literals), make_code(lengths + literals, distances));
  }

  void coded_block(const Code& literals, const Code& distances) {
    for (int literal = symbol(literals); literal != kEndOfBlock; literal = symbol(literals)) {
      if (literal < kEndOfBlock) {
        expect_room(1);
        out_ += static_cast<char>(literal);
        continue;
      }
      const size_t length_index = static_cast<size_t>(literal - kEndOfBlock - 1);
      if (length_index >= std::size(kLengths)) broken("a length has a reserved symbol");
      const int length = value_in(kLengths[length_index]);
      const size_t distance_index = static_cast<size_t>(symbol(distances));
      if (distance_index >= std::size(kDistances)) broken("a distance has a reserved symbol");
      const size_t distance = static_cast<size_t>(value_in(kDistances[distance_index]));
      if (distance > out_.size()) broken("a distance leads before the start");
      expect_room(length);
      for (int i = 0; i < length; ++i) out_ += out_[out_.size() - distance];  // may overlap itself
    }
  }

  const uint8_t* stream_;
  size_t stream_size_, size_;
  size_t at_ = 0;
  uint32_t held_ = 0;  // bits of the stream that were read ahead, lowest first
  int held_count_ = 0;
  std::string out_;
};

}  // namespace

std::string inflate(const uint8_t* stream, size_t stream_size, size_t size) {
  return Inflater(stream, stream_size, size).run();
}

}  // namespace phonebit::engine::format
