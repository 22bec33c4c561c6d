// Packs filters that share sums.
#include "shared_lists.h"

#include "select.h"
#include "shared.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/padded_map.inl"

inline int filter_bit(const uint32_t* filter, int position) {
  return filter[position / 32] >> (position % 32) & 1;
}

/// Lists positions into chunks.
struct ListWriter {
  const SharedPlanes& planes;
  uint16_t* out;
  int begun;                     // filters that have a sum
  int in_chunk = 0, length = 0;  // positions of the chunk so far, and of the open part

  void put(int position, int targets_if_full) {
    if (in_chunk + length == planes.halves() * kChunk) end(targets_if_full, true);
    if (length++ == 0) ++out;
    *out++ = (uint16_t)planes.offset(position);
  }
  void end(int targets, bool ends_chunk) {
    if (in_chunk + length > 0) write(targets, ends_chunk);
  }
  void write(int targets, bool ends_chunk) {
    const int unit = planes.halves() * kUnit, is_end = ends_chunk ? kEnd : 0;
    if (length == 0) ++out;
    for (; length % unit != 0; ++length) *out++ = (uint16_t)planes.offset(planes.positions);
    uint16_t* head = out - 1 - length;
    int units = length / unit;
    while (const int fresh = targets & ~begun) {
      const int one = fresh & -fresh;
      begun |= one, targets ^= one;
      *head = (uint16_t)(units | kFirst | (targets == 0 ? is_end : 0) | one << kFirstFilter);
      units = 0;
      if (targets != 0) head = out++;
    }
    if (targets != 0) *head = (uint16_t)(units | is_end | targets << kFirstFilter);
    in_chunk = ends_chunk ? 0 : in_chunk + length;
    length = 0;
  }
};

/// Positions of a segment and the pattern of each: which of a group's filters have it. It may be the union of two
/// patterns in whose lists the position is.
struct Patterns {
  uint8_t first[kMaxNeonPositions], second[kMaxNeonPositions];  // 0: none
};

/// Saves units: what a pattern has beyond whole ones goes to the lists of two patterns whose union it is, where these
/// have room, so that units are full.
PHONEBIT_RARE void fill_units(Patterns& of, int begin, int end, int patterns, int unit) {
  int counts[1 << kMaxFilters] = {}, whole[1 << kMaxFilters] = {};
  for (int i = begin; i < end; ++i) ++counts[of.first[i]];
  for (int p = 0; p < patterns; ++p) whole[p] = counts[p];  // whose second pattern is 0
  const auto room = [&](int p, int part) {
    const int a = -counts[part] & (unit - 1), b = -counts[p ^ part] & (unit - 1);
    return a < b ? a : b;
  };
  for (int rest = 1; rest < unit; ++rest) {
    for (int p = 1; p < patterns; ++p) {
      if ((counts[p] & (unit - 1)) != rest || whole[p] < rest) continue;
      int all_room = 0;
      for (int part = (p - 1) & p; part > (p ^ part); part = (part - 1) & p) all_room += room(p, part);
      if (all_room < rest) continue;
      int i = begin, left = rest;
      for (int part = (p - 1) & p; part > (p ^ part); part = (part - 1) & p) {
        for (int n = room(p, part); n > 0 && left > 0; --n, --left) {
          while (of.first[i] != p || of.second[i] != 0) ++i;
          of.first[i] = (uint8_t)part, of.second[i] = (uint8_t)(p ^ part);
          ++counts[part], ++counts[p ^ part];
        }
      }
      counts[p] -= rest, whole[p] -= rest;
    }
  }
}

/// The list of some filters; T's with it. The last filter's patterns come before those that differ from them by its bit
/// only, and are summed on with these: so the others need one addition for both.
PHONEBIT_RARE uint16_t* pack_group(const SharedPlanes& planes, const uint32_t* filters, int filter_count,
                                   int segment, bool sums_all, uint16_t* out) {
  const int last = 1 << (filter_count - 1), all = sums_all ? 2 * last : 0;
  ListWriter list = {planes, out, segment == 0 ? 0 : last | (last - 1) | all};
  const int count = planes.positions, begin = count / planes.segments * segment,
            end = begin + count / planes.segments;
  Patterns of = {};
  for (int i = begin; i < end; ++i)
    for (int f = 0; f < filter_count; ++f) of.first[i] |= filter_bit(filters + f * (count / 32), i) << f;
  // T's bit is not a pattern's: in its lists all positions are once.
  if (!sums_all) fill_units(of, begin, end, 2 * last, planes.halves() * kUnit);
  for (int pattern = 0; pattern < last; ++pattern) {
    const int targets = pattern | all;
    for (int bit = last; bit >= 0; bit -= last) {
      if (targets == 0 && bit == 0) continue;
      for (int i = begin; i < end; ++i)
        if (of.first[i] == (pattern | bit) || (of.second[i] != 0 && of.second[i] == (pattern | bit)))
          list.put(i, targets | bit);
      list.end(bit != 0 ? last : targets, bit == 0 || targets == 0);
    }
  }
  if (const int empty = (last | (last - 1) | all) & ~list.begun) list.write(empty, true);
  *list.out++ = 0;
  return list.out;
}

}  // namespace

/// Of the lists of a block: with a head and up to 15 zeros for each pattern, a head for each chunk and filter, 0 after
/// a group.
size_t block_entries(const ConvShape& s) {
  const SharedPlanes planes(s);
  const int patterns = planes.segments << planes.group_filters;
  return (size_t)((kChannelBlock + planes.group_filters - 1) / planes.group_filters) *
         (planes.positions + (planes.halves() * kUnit + 1) * patterns + 2 * (planes.positions / kChunk) +
          planes.segments + kMaxFilters + 1);
}

size_t packed_list_bytes(const ConvShape& s) {
  return neon_entries_bytes(s) +
         sizeof(uint16_t) * (block_entries(s) * block_count(s) + 32);  // loops read ahead
}

PHONEBIT_RARE void pack_lists(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                              void* packed) {
  neon_pack_entries(s, weights, thresholds, true, packed);
  const SharedPlanes planes(s);
  const int count = planes.positions;
  const int classes = ((const BorderTable*)packed)->count();
  int32_t* entries = (int32_t*)((char*)packed + border_table_bytes(s));
  for (int c = 0; c < s.out_c; ++c) {
    int ones = 0;
    for (int i = 0; i < count; ++i) ones += filter_bit(weights + (size_t)c * (count / 32), i);
    // What is compared, or goes to the epilogue, is d - ones, and not from -2^15 on.
    for (int i = 0; i < classes; ++i) {
      int32_t* of_class = entries + ((size_t)c / kChannelBlock * classes + i) * kChannelBlock;
      const int lane = c % kChannelBlock;
      if (thresholds == nullptr) {
        of_class[lane] += 65536 - 2 * ones;
      } else {
        const int limit = ((uint16_t*)of_class)[lane];
        ((int16_t*)of_class)[lane] = (int16_t)((limit < count + 1 ? limit : count + 1) - ones);
      }
    }
  }
  uint16_t* lists = (uint16_t*)((char*)packed + neon_entries_bytes(s));
  for (int block = 0; block < block_count(s); ++block, lists += block_entries(s)) {
    uint16_t* out = lists;
    const int channels = channels_of(s, block);
    for (int segment = 0; segment < planes.segments; ++segment) {
      for (int c = 0, filters; c < channels; c += filters) {
        filters = planes.filters_from(c, channels);
        out = pack_group(planes, weights + (size_t)c * (count / 32), filters, segment, c == 0, out);
      }
    }
    weights += (size_t)channels * (count / 32);
  }
}

}  // namespace phonebit::engine::cpu
