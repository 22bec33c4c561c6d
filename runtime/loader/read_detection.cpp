// The DETECTION section: what boxes the numbers of an output mean. Nothing is computed with it.
#include <cinttypes>
#include <cmath>
#include <string>
#include <utility>

#include "loader/loader.h"
#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::DetectionRecord;

void check_head(const DetectionRecord& record, const Tensor& output, const std::string& where) {
  constexpr auto kLast = static_cast<uint32_t>(HeadKind::yolov2);
  if (record.kind < 1 || record.kind > kLast)
    fail(ErrorCode::format,
         "%s: unknown kind %" PRIu32 ", this engine knows 1 to %" PRIu32
         "; update PhoneBit or convert the model again",
         where.c_str(), record.kind, kLast);
  if (record.anchor_count < 1 || record.anchor_count > format::kMaxAnchors)
    fail_damaged("%s: %" PRIu32 " anchors, expected 1 to %" PRIu32, where.c_str(), record.anchor_count,
                 format::kMaxAnchors);
  for (uint32_t i = 0; i < 2 * record.anchor_count; ++i) {
    const float side = record.anchors[i];
    if (!(side > 0.0F && side <= static_cast<float>(Limits::kExtent)))
      fail_damaged("%s: anchor %" PRIu32 " has a side of %g, expected above 0 and up to %" PRIu32,
                   where.c_str(), i / 2, static_cast<double>(side), Limits::kExtent);
  }
  if (output.dtype != format::DataType::kF32) fail_damaged("%s: the output is not real", where.c_str());
  const auto count = static_cast<int>(record.anchor_count);
  if (output.channels % count != 0 || output.channels / count <= Limits::kBoxNumbers)
    fail_damaged("%s: %d anchors do not fit %d channels, expected %d for each anchor and one for each class",
                 where.c_str(), count, output.channels, Limits::kBoxNumbers);
}

}  // namespace

void read_detection(const Sections& sections, Model& model) {
  if (sections.detection.count > model.outputs.size())
    fail_damaged("section DETECTION: %" PRIu64 " records for %zu outputs", sections.detection.count,
                 model.outputs.size());
  std::vector<bool> is_described(model.outputs.size(), false);
  for (const DetectionRecord& record : sections.detection.records<DetectionRecord>()) {
    if (record.output >= model.outputs.size())
      fail_damaged("section DETECTION: output %" PRIu32 " does not exist, there are %zu", record.output,
                   model.outputs.size());
    const Tensor& output = model.tensor(model.outputs[record.output]);
    const std::string where = format_text("detection of output '%s'", output.name.c_str());
    if (is_described[record.output]) fail_damaged("%s: is there twice", where.c_str());
    is_described[record.output] = true;
    check_head(record, output, where);
    DetectionHead head{static_cast<int>(record.output), static_cast<HeadKind>(record.kind), {}};
    for (uint32_t i = 0; i < record.anchor_count; ++i)
      head.anchors.push_back({record.anchors[2 * i], record.anchors[2 * i + 1]});
    model.detection.push_back(std::move(head));
  }
}

}  // namespace phonebit::engine::loader
