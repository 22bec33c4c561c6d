// The PREPROCESSING section: what images become before the network reads them. Nothing is computed with it.
#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <iterator>
#include <string>

#include "loader/loader.h"
#include "loader/validate.h"
#include "types/fail.h"

namespace phonebit::engine::loader {
namespace {

using format::PreprocessingRecord;

constexpr uint32_t kMaxLevel = 255;

void check_choice(const std::string& where, const char* field, uint32_t value, uint32_t last) {
  if (value > last)
    fail(ErrorCode::format,
         "%s: unknown %s %" PRIu32 ", this engine knows 0 to %" PRIu32
         "; update PhoneBit or convert the model again",
         where.c_str(), field, value, last);
}

/// Channels of an image in this order; those of the input where it is no image.
int channels_of(uint32_t color_order, const Tensor& input) {
  switch (static_cast<ColorOrder>(color_order)) {
    case ColorOrder::none:
      break;
    case ColorOrder::gray:
      return 1;
    case ColorOrder::rgb:
    case ColorOrder::bgr:
      return 3;
    case ColorOrder::rgba:
      return 4;
  }
  return input.channels;
}

void check_rule(const PreprocessingRecord& record, const Tensor& input, const std::string& where) {
  check_choice(where, "color_order", record.color_order, static_cast<uint32_t>(ColorOrder::rgba));
  check_choice(where, "resize", record.resize, static_cast<uint32_t>(Resize::letterbox));
  check_choice(where, "interpolation", record.interpolation, static_cast<uint32_t>(Interpolation::bicubic));
  const int channels = channels_of(record.color_order, input);
  if (channels != input.channels)
    fail_damaged("%s: color_order %" PRIu32 " has %d channels, the input has %d", where.c_str(),
                 record.color_order, channels, input.channels);
  const auto needed = static_cast<uint32_t>(std::max(input.height, input.width));
  if (record.resize == static_cast<uint32_t>(Resize::shorter_side) &&
      (record.resize_to < needed || record.resize_to > Limits::kExtent))
    fail_damaged("%s: resize_to is %" PRIu32 ", expected %" PRIu32 " to %" PRIu32, where.c_str(),
                 record.resize_to, needed, Limits::kExtent);
  if (record.fill_level > kMaxLevel)
    fail_damaged("%s: fill_level is %" PRIu32 ", expected 0 to %" PRIu32, where.c_str(), record.fill_level,
                 kMaxLevel);
}

/// Every level must stand for a finite float32.
void check_values(const PreprocessingRecord& record, const Tensor& input, const std::string& where) {
  if (!std::isfinite(record.low) || !std::isfinite(record.high) || record.low == record.high)
    fail_damaged("%s: low and high are %g and %g, expected two different finite numbers", where.c_str(),
                 record.low, record.high);
  for (size_t c = 0; c < std::size(record.mean); ++c) {
    const double mean = record.mean[c];
    const double deviation = record.deviation[c];
    if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0.0)
      fail_damaged("%s: mean %g and deviation %g of channel %zu, expected finite ones, the latter above 0",
                   where.c_str(), mean, deviation, c);
    if (static_cast<size_t>(input.channels) > std::size(record.mean) &&
        (mean != record.mean[0] || deviation != record.deviation[0]))
      fail_damaged("%s: means or deviations differ, but the input has %d channels", where.c_str(),
                   input.channels);
    const double ends[] = {(record.low - mean) / deviation, (record.high - mean) / deviation,
                           (record.high - record.low) / deviation};
    for (const double end : ends) {
      if (!(std::fabs(end) <= FLT_MAX))
        fail_damaged("%s: levels of channel %zu stand for values that float32 cannot hold", where.c_str(), c);
    }
  }
}

/// Of a record that was checked.
Preprocessing rule_of(const PreprocessingRecord& record) {
  Preprocessing rule{};
  rule.input = static_cast<int>(record.input);
  rule.color_order = static_cast<ColorOrder>(record.color_order);
  rule.resize = static_cast<Resize>(record.resize);
  rule.resize_to = static_cast<int>(record.resize_to);
  rule.fill_level = static_cast<int>(record.fill_level);
  rule.interpolation = static_cast<Interpolation>(record.interpolation);
  rule.low = record.low;
  rule.high = record.high;
  std::copy(std::begin(record.mean), std::end(record.mean), rule.mean);
  std::copy(std::begin(record.deviation), std::end(record.deviation), rule.deviation);
  return rule;
}

}  // namespace

void read_preprocessing(const Sections& sections, Model& model) {
  if (sections.preprocessing.count > model.inputs.size())
    fail_damaged("section PREPROCESSING: %" PRIu64 " records for %zu inputs", sections.preprocessing.count,
                 model.inputs.size());
  std::vector<bool> is_described(model.inputs.size(), false);
  for (const PreprocessingRecord& record : sections.preprocessing.records<PreprocessingRecord>()) {
    if (record.input >= model.inputs.size())
      fail_damaged("section PREPROCESSING: input %" PRIu32 " does not exist, there are %zu", record.input,
                   model.inputs.size());
    const Tensor& input = model.tensor(model.inputs[record.input]);
    const std::string where = format_text("preprocessing of input '%s'", input.name.c_str());
    if (is_described[record.input]) fail_damaged("%s: is there twice", where.c_str());
    is_described[record.input] = true;
    check_rule(record, input, where);
    check_values(record, input, where);
    model.preprocessing.push_back(rule_of(record));
  }
}

}  // namespace phonebit::engine::loader
