// Images as inputs.
#include <algorithm>
#include <iterator>

#include "arguments.h"
#include "descriptions.h"
#include "handles.h"
#include "images/image.h"
#include "phonebit/fields.h"
#include "status.h"

using namespace phonebit::engine;
using namespace phonebit::engine::c_api;

static_assert(static_cast<int>(ColorOrder::rgba) == PHONEBIT_COLOR_RGBA);
static_assert(static_cast<int>(Resize::letterbox) == PHONEBIT_RESIZE_LETTERBOX);
static_assert(static_cast<int>(Interpolation::bicubic) == PHONEBIT_INTERPOLATION_BICUBIC);

namespace {

/// The file's rule for an input, or null.
const Preprocessing* rule_of(const Network& network, size_t input) {
  for (const Preprocessing& rule : network.preprocessing())
    if (static_cast<size_t>(rule.input) == input) return &rule;
  return nullptr;
}

phonebit_preprocessing described(const Preprocessing& rule) {
  phonebit_preprocessing result{};
  phonebit::detail::assign_rule(result, rule);
  return result;
}

/// What an image becomes where the file says nothing: levels are levels, of the input's size.
Preprocessing rule_of_levels(const TensorInfo& tensor, int32_t input) {
  if (tensor.dtype != ElementType::u8)
    fail(ErrorCode::input, "input '%s': the file does not say how images are prepared for it; give a rule",
         tensor.name.c_str());
  Preprocessing rule{};
  rule.input = input;
  rule.color_order = tensor.channels == 1   ? ColorOrder::gray
                     : tensor.channels == 4 ? ColorOrder::rgba
                                            : ColorOrder::rgb;
  rule.resize = Resize::stretch;
  rule.interpolation = Interpolation::bilinear;
  rule.high = 255.0;
  std::fill(std::begin(rule.deviation), std::end(rule.deviation), 1.0);
  return rule;
}

images::Image image_of(const phonebit_picture& given_image) {
  const auto source = taken(given_image, "phonebit_picture");
  enumerator(source.format, images::ImageFormat::i420, "format");
  enumerator(source.yuv, images::YuvColors::bt709_limited, "yuv");
  images::Image image;
  phonebit::detail::assign_image(image, source);
  return image;
}

}  // namespace

Preprocessing phonebit::engine::c_api::preprocessing_of(const phonebit_preprocessing& given_rule,
                                                        int32_t input) {
  const auto source = taken(given_rule, "phonebit_preprocessing");
  enumerator(source.color_order, ColorOrder::rgba, "color_order");
  enumerator(source.resize, Resize::letterbox, "resize");
  enumerator(source.interpolation, Interpolation::bicubic, "interpolation");
  Preprocessing rule{};
  rule.input = input;
  phonebit::detail::assign_rule(rule, source);
  return rule;
}

phonebit_status phonebit_network_preprocessing(const phonebit_network* network, int32_t input,
                                               phonebit_preprocessing* rule) {
  return guarded([&] {
    const Network& own = given(network, "network").network;
    phonebit_preprocessing& result = given(rule, "rule");
    const Preprocessing* const found = rule_of(own, checked_index(input, own.inputs().size(), "inputs"));
    give(result, found != nullptr ? described(*found) : phonebit_preprocessing{}, "phonebit_preprocessing");
  });
}

phonebit_status phonebit_network_prepare_picture(const phonebit_network* network, int32_t input,
                                                 const phonebit_picture* image,
                                                 const phonebit_preprocessing* rule, void* data,
                                                 size_t bytes) {
  return guarded([&] {
    const Network& own = given(network, "network").network;
    const size_t index = checked_index(input, own.inputs().size(), "inputs");
    const TensorInfo& tensor = own.inputs()[index];
    const images::Image source = image_of(given(image, "image"));
    const Preprocessing* const found = rule_of(own, index);
    const Preprocessing own_rule = rule != nullptr    ? preprocessing_of(*rule, input)
                                   : found != nullptr ? *found
                                                      : rule_of_levels(tensor, input);
    images::prepare_image(source, own_rule, tensor, data, bytes);
  });
}
