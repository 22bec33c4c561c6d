// Mutates .pbit files: values of whole fields, shapes that stay consistent, and the checksum renewed, so that
// validation has to find the damage and not the checksum.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "format/pbit_records.h"
#include "loader/crc32.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace phonebit::engine::format;

/// Around the sizes of words, vectors and limits; bit patterns of floats that are no ordinary numbers.
constexpr uint32_t kExtremes[] = {0,          1,          2,
                                  3,          5,          7,
                                  8,          15,         16,
                                  17,         31,         32,
                                  33,         63,         64,
                                  65,         127,        128,
                                  129,        255,        256,
                                  257,        1023,       1024,
                                  1u << 14,   1u << 20,   (1u << 20) + 1,
                                  1u << 24,   0x7FFFFFFF, 0x80000000,
                                  0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
                                  0x7FC00000, 0x7F800000, 0xFF800000,
                                  0x3F800000, 0xBF800000};

class Mutator {
 public:
  Mutator(uint8_t* data, size_t size, size_t capacity, unsigned seed)
      : data_(data), size_(size), capacity_(capacity), random_(seed) {}

  size_t run() {
    for (size_t times = 1 + below(3); times > 0; --times) mutate();
    if (below(200) != 0) seal();
    return size_;
  }

 private:
  /// 0 where the limit is 0.
  size_t below(size_t limit) { return limit > 0 ? random_() % limit : 0; }

  template <class Record>
  Record read(size_t at) const {
    Record record{};
    if (at <= size_ && sizeof record <= size_ - at) std::memcpy(&record, data_ + at, sizeof record);
    return record;
  }
  template <class Record>
  void write(size_t at, const Record& record) {
    if (at <= size_ && sizeof record <= size_ - at) std::memcpy(data_ + at, &record, sizeof record);
  }

  /// Sections that lie in the file and hold whole records.
  std::vector<SectionRecord> sections() const {
    std::vector<SectionRecord> found;
    const auto header = read<Header>(0);
    for (size_t i = 0; i < std::min<size_t>(header.section_count, 24); ++i) {
      const auto section = read<SectionRecord>(header.section_table_offset + i * sizeof(SectionRecord));
      const bool is_inside = section.offset <= size_ && section.size_bytes <= size_ - section.offset;
      if (is_inside && section.record_bytes > 0 && section.size_bytes >= std::max(section.record_bytes, 4u))
        found.push_back(section);
    }
    return found;
  }

  /// Record size `bytes`, or 0 where there is no such section.
  SectionRecord section_of(SectionKind kind) const {
    for (const SectionRecord& section : sections())
      if (section.kind == static_cast<uint32_t>(kind)) return section;
    return {};
  }

  size_t random_record(const SectionRecord& section, size_t record_bytes) {
    return section.offset + record_bytes * below(section.size_bytes / record_bytes);
  }

  void mutate() {
    const std::vector<SectionRecord> all = sections();
    const size_t kind = below(100);
    if (all.empty() || kind < 8) {
      size_ = LLVMFuzzerMutate(data_, size_, capacity_);
    } else if (kind < 68) {
      change_field(all[below(all.size())]);
    } else if (kind < 76) {
      resize_tensors(section_of(SectionKind::kTensors));
    } else if (kind < 82) {
      resize_constant(section_of(SectionKind::kConstants));
    } else if (kind < 91) {
      copy_record(all[below(all.size())]);
    } else if (kind < 97) {
      change_table();
    } else {
      size_ = std::max(sizeof(Header), below(size_));
    }
  }

  /// A 32-bit field of a record.
  void change_field(const SectionRecord& section) {
    const size_t bytes = std::max(section.record_bytes, 4u);
    const size_t field = 4 * below(bytes / 4);
    const size_t at = random_record(section, bytes) + field;
    const auto other = read<uint32_t>(random_record(section, bytes) + field);
    write(at, changed(read<uint32_t>(at), other));
  }

  uint32_t changed(uint32_t value, uint32_t other) {
    switch (below(8)) {
      case 0:
      case 1:
        return kExtremes[below(std::size(kExtremes))];
      case 2:
        return value + 1;
      case 3:
        return value - 1;
      case 4:
        return below(2) != 0 ? value * 2 : value / 2;
      case 5:
        return other;
      case 6:
        return static_cast<uint32_t>(below(20));
      default:
        return value ^ 1u << below(32);
    }
  }

  /// The same extent of all tensors that share its value, as in a network of another size.
  void resize_tensors(const SectionRecord& section) {
    if (section.size_bytes == 0) return;
    const size_t field = offsetof(TensorRecord, height) + 4 * below(3);
    const auto old = read<uint32_t>(random_record(section, sizeof(TensorRecord)) + field);
    const auto size = static_cast<uint32_t>(1 + below(70));
    for (size_t at = 0; at < section.size_bytes; at += sizeof(TensorRecord)) {
      const size_t place = section.offset + at + field;
      if (read<uint32_t>(place) == old && below(8) != 0) write(place, size);
    }
  }

  /// A constant of another length or type whose fields agree.
  void resize_constant(const SectionRecord& section) {
    if (section.size_bytes == 0) return;
    const size_t at = random_record(section, sizeof(ConstantRecord));
    auto constant = read<ConstantRecord>(at);
    if (below(3) == 0) constant.dtype = static_cast<uint32_t>(below(7));
    constant.count = below(2) != 0 ? changed(static_cast<uint32_t>(constant.count), 1) : below(600);
    constant.size_bytes = constant.count * element_bytes(static_cast<DataType>(constant.dtype));
    if (below(3) == 0) constant.offset = kAlignment * below(constant.offset / kAlignment + 3);
    write(at, constant);
  }

  void copy_record(const SectionRecord& section) {
    const size_t from = random_record(section, section.record_bytes);
    std::memmove(data_ + random_record(section, section.record_bytes), data_ + from, section.record_bytes);
  }

  /// The section table or the header.
  void change_table() {
    const auto header = read<Header>(0);
    const bool is_header = below(3) == 0;
    const size_t words = is_header ? sizeof header / 4 : 8 * std::min<size_t>(header.section_count, 24);
    const size_t at = (is_header ? 0 : header.section_table_offset) + 4 * below(words);
    const auto value = read<uint32_t>(at);
    write(at, below(2) != 0 ? changed(value, 0) : value + kAlignment * static_cast<uint32_t>(below(5)));
  }

  void seal() {
    if (size_ < sizeof(Header)) return;
    auto header = read<Header>(0);
    header.file_bytes = size_;
    header.crc32 = 0;
    write(0, header);
    header.crc32 = phonebit::engine::loader::crc32(0, data_, size_);
    write(0, header);
  }

  uint8_t* data_;
  size_t size_;
  const size_t capacity_;
  std::minstd_rand random_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return Mutator(data, size, max_size, seed).run();
}
