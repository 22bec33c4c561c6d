// Where a picture comes to lie in a network's input: the geometry of every way to resize.
#pragma once

#include "types/preprocessing.h"

namespace phonebit::engine::pictures {

struct Size {
  int width, height;
};

/// A picture is resized as a whole to `scaled`, then its upper left corner lies at (left, top) of the input,
/// which cuts (negative) or surrounds it.
struct Placement {
  Size scaled;
  int left, top;
};

/// The same numbers as place_picture of phonebit/images/placement.py. Throws Error(input) where the picture
/// becomes too large.
Placement place_picture(Size picture, Size input, const Preprocessing& rule);

}  // namespace phonebit::engine::pictures
