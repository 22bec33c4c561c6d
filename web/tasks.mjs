// What the outputs of classifiers and detectors mean: the formulas of docs/detection.md and of phonebit/network/tasks.py,
// in JavaScript's 64-bit numbers as there.

/** Probabilities of logits: exp(s_i) / sum of exp(s_j), the maximum taken off first. */
export function softmax(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = Array.from(scores, (score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

const sigmoid = (x) => 0.5 * (1 + Math.tanh(x / 2));
const MAX_EXPONENT = 50; // a box e^50 times its anchor is nonsense; its size must still be a number
const BOX_NUMBERS = 5;

/** All boxes of a YOLOv2 head, [left, top, right, bottom] in parts of the input, with scores per class. */
export function decodeYolov2(values, { height, width, channels }, anchors) {
  const each = channels / anchors.length;
  if (!Number.isInteger(each) || each <= BOX_NUMBERS)
    throw new Error(
      `detection: the output does not fit the anchors; got ${channels} channels, expected ` +
        `${anchors.length} x (${BOX_NUMBERS} + classes) for ${anchors.length} anchors`,
    );
  const found = [];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      anchors.forEach(([anchorWidth, anchorHeight], a) => {
        const from = (y * width + x) * channels + a * each;
        const cell = values.subarray(from, from + each);
        const centre = [(x + sigmoid(cell[0])) / width, (y + sigmoid(cell[1])) / height];
        const size = [
          (anchorWidth * Math.exp(Math.min(cell[2], MAX_EXPONENT))) / width,
          (anchorHeight * Math.exp(Math.min(cell[3], MAX_EXPONENT))) / height,
        ];
        const box = [
          centre[0] - size[0] / 2, centre[1] - size[1] / 2,
          centre[0] + size[0] / 2, centre[1] + size[1] / 2,
        ];
        const objectness = sigmoid(cell[4]);
        found.push({ box, scores: softmax(cell.subarray(BOX_NUMBERS)).map((share) => objectness * share) });
      });
  return found;
}

const area = ([left, top, right, bottom]) => Math.max(right - left, 0) * Math.max(bottom - top, 0);

function overlap(a, b) {
  const shared = area([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
  const union = area(a) + area(b) - shared;
  return union > 0 ? shared / union : 0;
}

/** {index, score, box} of each class, best first; of boxes that overlap by more than `limits.overlap` the best stays. */
export function findBoxes(values, shape, anchors, limits) {
  const candidates = decodeYolov2(values, shape, anchors);
  const found = [];
  for (let index = 0; index < candidates[0].scores.length; index++) {
    let waiting = candidates
      .map(({ box, scores }) => ({ index, score: scores[index], box }))
      .filter(({ score }) => score >= limits.score)
      .sort((a, b) => b.score - a.score);
    while (waiting.length) {
      const [best, ...rest] = waiting;
      found.push(best);
      waiting = rest.filter(({ box }) => overlap(best.box, box) <= limits.overlap);
    }
  }
  return found.sort((a, b) => b.score - a.score);
}

/** A box in parts of the input as pixels of the image, which lies in the input at `place`; null where none is left. */
export function inImage(box, input, image, place) {
  const side = (value, inputSide, offset, scaled, imageSide) =>
    Math.min(Math.max((value * inputSide - offset) * (imageSide / scaled), 0), imageSide);
  const pixels = box.map((value, i) =>
    i % 2 === 0
      ? side(value, input.width, place.left, place.width, image.width)
      : side(value, input.height, place.top, place.height, image.height),
  );
  return area(pixels) > 0 ? pixels : null;
}
