// Camera frames and images as inputs of networks: cropped, turned, resized, normalised.
#pragma once

#include <cstddef>
#include <vector>

#include "images/placement.h"
#include "phonebit/records.h"
#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit::engine::images {

// A caller's image, as the C++ interface has it.
using phonebit::Image;
using phonebit::ImageFormat;
using YuvColors = phonebit::Yuv;

/// Makes one image of `input` of a caller's image: RGB, cropped, turned, in the colours and of the size that `rule`
/// says, as levels (u8) or values (f32); `rule.input` is not looked at. The same numbers as Pillow makes
/// of the upright image. Luma and chroma first become RGB levels, each chroma sample for its 2x2 pixels;
/// the results are the formulas' rounded ones or neighbours. Returns where the upright image lies.
///
/// `data` holds input.bytes() bytes, 4-byte aligned for f32; untouched when this throws. Allocates some rows.
/// Any thread. Throws Error(input): an image, rule or buffer that cannot be, an input that takes no
/// images.
Placement prepare_image(const Image& image, const Preprocessing& rule, const TensorInfo& input, void* data,
                        size_t bytes);

/// The rule that a file has for input `index`, or null.
const Preprocessing* find_rule(const std::vector<Preprocessing>& rules, size_t index);

/// The same; where the file says nothing, levels of the input's size stay levels. Throws Error(input) where `input`
/// takes none.
Preprocessing rule_for(const std::vector<Preprocessing>& rules, const TensorInfo& input, size_t index);

}  // namespace phonebit::engine::images
