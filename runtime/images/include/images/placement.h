// Where an image comes to lie in a network's input: the geometry of every way to resize.
#pragma once

#include "types/preprocessing.h"

namespace phonebit::engine::images {

struct Size {
  int width, height;
};

/// An image is resized as a whole to `scaled`, then its upper left corner lies at (left, top) of the input,
/// which cuts (negative) or surrounds it.
struct Placement {
  Size scaled;
  int left, top;
};

/// Where an image lies in an input. Shorter side: as torchvision's Resize and CenterCrop. Throws Error(input)
/// where the image becomes too large.
Placement place_image(Size image, Size input, const Preprocessing& rule);

}  // namespace phonebit::engine::images
