#include "builder/pbit_writer.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "loader/crc32.h"

namespace phonebit::engine::builder {
namespace {

using format::SectionKind;

uint64_t align(uint64_t offset) {
  return (offset + format::kAlignment - 1) / format::kAlignment * format::kAlignment;
}

/// A section's content, where it is now.
struct Payload {
  SectionKind kind;
  size_t record_bytes;
  const void* data;
  size_t count;
};

template <class List>
Payload payload_of(SectionKind kind, const List& list) {
  return {kind, sizeof(*list.data()), list.data(), list.size()};
}

}  // namespace

uint32_t PbitWriter::name(const std::string& text) {
  const auto [place, is_new] = names_.emplace(text, static_cast<uint32_t>(strings_.size()));
  if (is_new) strings_.append(text.c_str(), text.size() + 1);
  return place->second;
}

int32_t PbitWriter::constant(format::DataType dtype, const void* elements, size_t count) {
  const size_t bytes = count * format::element_bytes(dtype);
  const auto offset = static_cast<size_t>(align(data_.size()));
  data_.resize(offset);
  const auto* const begin = static_cast<const std::byte*>(elements);
  data_.insert(data_.end(), begin, begin + bytes);
  constants_.push_back({static_cast<uint32_t>(dtype), 0, count, offset, bytes});
  return static_cast<int32_t>(constants_.size() - 1);
}

memory::AlignedBuffer PbitWriter::file() const {
  std::vector<Payload> sections = {
      payload_of(SectionKind::kStrings, strings_),     payload_of(SectionKind::kTensors, tensors),
      payload_of(SectionKind::kConstants, constants_), payload_of(SectionKind::kOperands, operands),
      payload_of(SectionKind::kSteps, steps),          payload_of(SectionKind::kOps, ops),
      payload_of(SectionKind::kInputs, inputs),        payload_of(SectionKind::kOutputs, outputs),
      payload_of(SectionKind::kMetadata, metadata),
  };
  if (!preprocessing.empty()) sections.push_back(payload_of(SectionKind::kPreprocessing, preprocessing));
  if (!labels.empty()) sections.push_back(payload_of(SectionKind::kLabels, labels));
  sections.push_back(payload_of(SectionKind::kData, data_));

  std::vector<format::SectionRecord> table;
  uint64_t end = sizeof(format::Header) + sections.size() * sizeof(format::SectionRecord);
  for (const Payload& section : sections) {
    const uint64_t offset = align(end), bytes = section.count * section.record_bytes;
    table.push_back({static_cast<uint32_t>(section.kind), static_cast<uint32_t>(section.record_bytes), offset,
                     bytes, section.count});
    end = offset + bytes;
  }

  format::Header header{};
  std::copy(std::begin(format::kMagic), std::end(format::kMagic), header.magic);
  header.version = format::kVersion;
  header.header_bytes = sizeof header;
  header.section_count = static_cast<uint32_t>(sections.size());
  header.file_bytes = end;
  header.section_table_offset = sizeof header;

  memory::AlignedBuffer file(static_cast<size_t>(end), "the network's file");
  std::memset(file.data(), 0, file.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, table.data(), table.size() * sizeof table[0]);
  for (size_t i = 0; i < sections.size(); ++i)
    if (sections[i].count > 0)
      std::memcpy(file.data() + table[i].offset, sections[i].data, static_cast<size_t>(table[i].size_bytes));
  header.crc32 = loader::crc32(0, file.data(), file.size());  // over the field as zero
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace phonebit::engine::builder
