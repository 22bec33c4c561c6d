#include "loader/sections.h"

#include <algorithm>
#include <cinttypes>

#include "loader/crc32.h"
#include "loader/file_bytes.h"
#include "memory/ascending.h"
#include "types/cancellation.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::Header;
using format::SectionKind;
using format::SectionRecord;

constexpr uint32_t kMaxSections = 1024;

struct SectionType {
  SectionKind kind;
  const char* name;
  uint32_t record_bytes;
  Section Sections::* member;
};

constexpr SectionType kTypes[] = {
    {SectionKind::kStrings, "STRINGS", 1, &Sections::strings},
    {SectionKind::kTensors, "TENSORS", sizeof(format::TensorRecord), &Sections::tensors},
    {SectionKind::kConstants, "CONSTANTS", sizeof(format::ConstantRecord), &Sections::constants},
    {SectionKind::kOperands, "OPERANDS", sizeof(uint32_t), &Sections::operands},
    {SectionKind::kSteps, "STEPS", sizeof(format::StepRecord), &Sections::steps},
    {SectionKind::kOps, "OPS", sizeof(format::OpRecord), &Sections::ops},
    {SectionKind::kInputs, "INPUTS", sizeof(uint32_t), &Sections::inputs},
    {SectionKind::kOutputs, "OUTPUTS", sizeof(uint32_t), &Sections::outputs},
    {SectionKind::kData, "DATA", 1, &Sections::data},
    {SectionKind::kMetadata, "METADATA", 1, &Sections::metadata},
    {SectionKind::kPreprocessing, "PREPROCESSING", sizeof(format::PreprocessingRecord),
     &Sections::preprocessing},
    {SectionKind::kLabels, "LABELS", sizeof(uint32_t), &Sections::labels},
    {SectionKind::kDetection, "DETECTION", sizeof(format::DetectionRecord), &Sections::detection},
    {SectionKind::kExecutionPlans, "EXECUTION_PLANS", sizeof(format::PlanRecord), &Sections::plans},
    {SectionKind::kPlanParts, "PLAN_PARTS", sizeof(format::PlanPartRecord), &Sections::plan_parts},
};

/// A used part of the file, to find overlaps and gaps.
struct Extent {
  uint64_t begin, end;
  uint32_t kind;  // 0: header or section table
};

Header read_header(const std::byte* file, size_t size) {
  Header header;
  if (size < sizeof header)
    fail_damaged("%zu bytes are too short for a .pbit file, expected at least %zu", size, sizeof header);
  std::memcpy(&header, file, sizeof header);
  if (std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0)
    fail(ErrorCode::format,
         "not a .pbit file: it does not start with 'PBIT'; use the output of `phonebit convert`");
  if (header.version != format::kVersion)
    fail(ErrorCode::format, "format version %" PRIu32 ", this engine reads version %" PRIu32 "; %s",
         header.version, format::kVersion,
         header.version > format::kVersion ? "update PhoneBit" : "convert the model again");
  if (header.header_bytes != sizeof header)
    fail_damaged("header: header_bytes is %" PRIu32 ", expected %zu", header.header_bytes, sizeof header);
  if (header.file_bytes != size)
    fail_damaged("header: file_bytes is %" PRIu64
                 ", but the file has %zu bytes (truncated download or copy?)",
                 header.file_bytes, size);
  return header;
}

void check_crc(const Header& header, const std::byte* file, size_t size) {
  Header zeroed = header;
  zeroed.crc32 = 0;
  uint32_t crc = crc32(0, &zeroed, sizeof zeroed);
  const Cancellation cancellation;
  for (size_t at = sizeof zeroed, count = 0; at < size; at += count) {
    count = std::min(kPieceBytes, size - at);
    crc = crc32(crc, file + at, count);
    cancellation.check();
  }
  if (crc != header.crc32) fail_damaged("checksum 0x%08" PRIX32 ", expected 0x%08" PRIX32, crc, header.crc32);
}

std::vector<SectionRecord> read_table(const Header& header, const std::byte* file, size_t size) {
  if (header.section_count > kMaxSections)
    fail_damaged("header: %" PRIu32 " sections, at most %" PRIu32 " are allowed", header.section_count,
                 kMaxSections);
  const uint64_t table_bytes = uint64_t{header.section_count} * sizeof(SectionRecord);
  if (header.section_table_offset < sizeof header || header.section_table_offset % 8 != 0 ||
      header.section_table_offset > size || table_bytes > size - header.section_table_offset)
    fail_damaged("header: the section table at %" PRIu64 " (%" PRIu64
                 " bytes) does not fit the file of %zu bytes",
                 header.section_table_offset, table_bytes, size);
  std::vector<SectionRecord> table(header.section_count);
  if (table_bytes > 0)
    std::memcpy(table.data(), file + header.section_table_offset, static_cast<size_t>(table_bytes));
  return table;
}

void check_bounds(const SectionRecord& record, const char* name, size_t size) {
  if (record.offset % format::kAlignment != 0)
    fail_damaged("section %s: offset %" PRIu64 " is not a multiple of %" PRIu32, name, record.offset,
                 format::kAlignment);
  if (record.size_bytes > size || record.offset > size - record.size_bytes)
    fail_damaged("section %s: %" PRIu64 " bytes at %" PRIu64 " exceed the file of %zu bytes", name,
                 record.size_bytes, record.offset, size);
  if (record.record_bytes == 0 || record.size_bytes % record.record_bytes != 0 ||
      record.count != record.size_bytes / record.record_bytes)
    fail_damaged("section %s: %" PRIu64 " records of %" PRIu32 " bytes do not make %" PRIu64 " bytes", name,
                 record.count, record.record_bytes, record.size_bytes);
}

/// Parts of the file may not overlap, and what lies between them is zero.
void check_extents(std::vector<Extent> extents, const std::byte* file, size_t size) {
  extents.push_back({size, size, 0});
  std::vector<uint64_t> begins;
  begins.reserve(extents.size());
  for (const Extent& extent : extents) begins.push_back(extent.begin);
  uint64_t end = 0;
  for (const size_t i : memory::ascending(begins)) {
    const Extent& extent = extents[i];
    if (extent.begin < end)
      fail_damaged("section of kind %" PRIu32 " at %" PRIu64
                   " overlaps its predecessor, which ends at %" PRIu64,
                   extent.kind, extent.begin, end);
    for (uint64_t at = end; at < extent.begin; ++at) {
      if (file[at] != std::byte{0}) fail_damaged("the gap at byte %" PRIu64 " is not zero", at);
    }
    end = extent.end;
  }
}

const SectionType* find_type(uint32_t kind) {
  for (const SectionType& type : kTypes) {
    if (static_cast<uint32_t>(type.kind) == kind) return &type;
  }
  return nullptr;
}

/// Checks one table entry and, where the kind is known, stores it. `seen` has one flag a known kind.
void take_section(const SectionRecord& record, const std::byte* file, size_t size, Sections& sections,
                  bool* seen) {
  const SectionType* type = find_type(record.kind);
  check_bounds(record, type != nullptr ? type->name : format_text("%" PRIu32, record.kind).c_str(), size);
  if (type == nullptr) {
    if (record.kind >= format::kOptionalSection) return;
    fail(ErrorCode::format, "unknown section kind %" PRIu32 "; the file needs a newer PhoneBit", record.kind);
  }
  bool& is_seen = seen[type - kTypes];
  if (is_seen) fail_damaged("section %s is present twice", type->name);
  is_seen = true;
  if (record.record_bytes != type->record_bytes)
    fail_damaged("section %s: records of %" PRIu32 " bytes, expected %" PRIu32, type->name,
                 record.record_bytes, type->record_bytes);
  sections.*(type->member) = {file + record.offset, record.size_bytes, record.count};
}

}  // namespace

Sections read_sections(const std::byte* file, size_t size) {
  const Header header = read_header(file, size);
  check_crc(header, file, size);
  const std::vector<SectionRecord> table = read_table(header, file, size);

  Sections sections;
  bool seen[std::size(kTypes)] = {};
  std::vector<Extent> extents = {{0, sizeof header, 0}};
  if (!table.empty())
    extents.push_back(
        {header.section_table_offset, header.section_table_offset + table.size() * sizeof(SectionRecord), 0});
  for (const SectionRecord& record : table) {
    take_section(record, file, size, sections, seen);
    if (record.size_bytes > 0)
      extents.push_back({record.offset, record.offset + record.size_bytes, record.kind});
  }
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    const bool is_optional = static_cast<uint32_t>(kTypes[i].kind) >= format::kOptionalSection;
    if (!seen[i] && !is_optional) fail_damaged("section %s is missing", kTypes[i].name);
  }
  check_extents(std::move(extents), file, size);
  return sections;
}

}  // namespace phonebit::engine::loader
