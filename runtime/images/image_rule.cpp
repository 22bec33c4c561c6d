// Which rule an input's images follow.
#include <algorithm>
#include <iterator>

#include "images/image.h"
#include "types/fail.h"

namespace phonebit::engine::images {

const Preprocessing* find_rule(const std::vector<Preprocessing>& rules, size_t index) {
  for (const Preprocessing& rule : rules)
    if (static_cast<size_t>(rule.input) == index) return &rule;
  return nullptr;
}

Preprocessing rule_for(const std::vector<Preprocessing>& rules, const TensorInfo& input, size_t index) {
  if (const Preprocessing* const found = find_rule(rules, index)) return *found;
  if (input.dtype != ElementType::u8)
    fail(ErrorCode::input, "input '%s': the file does not say how images are prepared for it; give a rule",
         input.name.c_str());
  Preprocessing rule{};
  rule.input = static_cast<int>(index);
  rule.color_order = input.channels == 1   ? ColorOrder::gray
                     : input.channels == 4 ? ColorOrder::rgba
                                           : ColorOrder::rgb;
  rule.resize = Resize::stretch;
  rule.interpolation = Interpolation::bilinear;
  rule.high = 255.0;
  std::fill(std::begin(rule.deviation), std::end(rule.deviation), 1.0);
  return rule;
}

}  // namespace phonebit::engine::images
