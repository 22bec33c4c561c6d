// Images as inputs.
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

phonebit_preprocessing described(const Preprocessing& rule) {
  phonebit_preprocessing result{};
  phonebit::detail::assign_rule(result, rule);
  return result;
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
    const Preprocessing* const found =
        images::find_rule(own.preprocessing(), checked_index(input, own.inputs().size(), "inputs"));
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
    const Preprocessing own_rule = rule != nullptr ? preprocessing_of(*rule, input)
                                                   : images::rule_for(own.preprocessing(), tensor, index);
    images::prepare_image(source, own_rule, tensor, data, bytes);
  });
}
