"""Write sample test pictures as PNG files, and the class names, for tests and the demo.

Chosen without regard to how they look: the first test picture of each class, then the first four
that the checkpoint gets wrong. Run after `train.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from training.fashion_mnist.dataset import CLASS_NAMES, DEFAULT_DIR, load_split, to_network_input
from training.fashion_mnist.fitting import predict_logits
from training.fashion_mnist.network import tf

SHIPPED = Path(__file__).resolve().parents[2] / "models" / "fashion_mnist"
WRONG_COUNT = 4


def main() -> None:
    """Write `pictures/<index>_<class>.png` and `labels.txt` beside the checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of the four .gz")
    parser.add_argument("--output", type=Path, default=SHIPPED, help="folder of the checkpoint")
    options = parser.parse_args()
    test = load_split(options.data, "t10k")
    model = tf.keras.models.load_model(options.output / "fashion_mnist_bnn.h5", compile=False)
    predicted = np.argmax(predict_logits(model, to_network_input(test.pictures)), axis=1)

    firsts = [int(np.argmax(test.labels == label)) for label in range(len(CLASS_NAMES))]
    wrong = [int(i) for i in np.flatnonzero(predicted != test.labels)]
    chosen = sorted(set(firsts) | set([i for i in wrong if i not in firsts][:WRONG_COUNT]))
    folder = options.output / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for index in chosen:
        name = f"{index:04d}_{CLASS_NAMES[test.labels[index]]}.png"
        (folder / name).write_bytes(tf.io.encode_png(test.pictures[index]).numpy())
        right = predicted[index] == test.labels[index]
        print(f"{name}: {'right' if right else f'taken for {CLASS_NAMES[predicted[index]]}'}")
    (options.output / "labels.txt").write_text("\n".join(CLASS_NAMES) + "\n")


if __name__ == "__main__":
    main()
