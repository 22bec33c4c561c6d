"""One training run: loss with distillation, mirrored batches, Adam along a half cosine."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.fashion_mnist.dataset import Split, to_network_input
from training.fashion_mnist.network import CLASS_COUNT, KerasModel, tf

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class Schedule:
    """How one network is trained.

    Attributes:
        epochs: passes over the 60,000 images.
        batch_size: images per step; the incomplete last batch of an epoch is left out.
        learning_rate: Adam's, at step 0; it falls to 0 at the last step along a half cosine.
        distill_weight: share of the loss that compares with the twin, 0..1.
        temperature: divides both networks' logits in that share.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    distill_weight: float = 0.0
    temperature: float = 1.0


def make_loss(schedule: Schedule) -> Any:
    """Build the training loss over logits.

    With y the one-hot label, t the twin's logits, z the network's, w and T from the schedule:
        loss = (1 - w) CE(y, softmax(z)) + w T^2 CE(softmax(t / T), softmax(z / T)).
    T^2 keeps both gradients of one size, since d/dz of the second term shrinks with 1 / T^2.

    Args:
        schedule: weight and temperature.

    Returns:
        Function of (target float32[N][20] = y next to t, logits float32[N][10]) -> float32[N].

    Source: Hinton, Vinyals, Dean 2015, section 2.
    """
    weight, temperature = schedule.distill_weight, schedule.temperature

    def loss(target: Any, logits: Any) -> Any:
        one_hot, twin_logits = target[:, :CLASS_COUNT], target[:, CLASS_COUNT:]
        hard = tf.nn.softmax_cross_entropy_with_logits(one_hot, logits)
        if weight == 0.0:
            return hard
        soft = tf.nn.softmax_cross_entropy_with_logits(
            tf.nn.softmax(twin_logits / temperature), logits / temperature
        )
        return (1.0 - weight) * hard + weight * temperature**2 * soft

    return loss


def accuracy(target: Any, logits: Any) -> Any:
    """Share of images whose largest logit is the label's (a Keras metric)."""
    return tf.keras.metrics.categorical_accuracy(target[:, :CLASS_COUNT], logits)


def make_batches(
    images: FloatArray,
    targets: FloatArray,
    mirrored_targets: FloatArray,
    batch_size: int,
    seed: int,
) -> Any:
    """Shuffle, mirror every image left to right with probability 1/2, and batch.

    Args:
        images: float32[N][28][28][1].
        targets: float32[N][20], used where the image is left as it is.
        mirrored_targets: float32[N][20], used where it is mirrored.
        batch_size: images per step.
        seed: of the order and of the coin, which is drawn anew in every epoch.

    Returns:
        tf.data pipeline of (images, targets).
    """
    count = len(images)
    data = tf.data.Dataset.from_tensor_slices((images, targets, mirrored_targets))
    data = data.shuffle(count, seed=seed).batch(batch_size, drop_remainder=True)
    coins = tf.data.Dataset.random(seed=seed + 1, rerandomize_each_iteration=True)
    coins = coins.map(lambda word: word % 2 == 0).batch(batch_size)

    def mirror(batch: tuple[Any, Any, Any], coin: Any) -> tuple[Any, Any]:
        x, target, mirrored_target = batch
        mirrored = tf.reverse(x, axis=[2])
        return (
            tf.where(coin[:, None, None, None], mirrored, x),
            tf.where(coin[:, None], mirrored_target, target),
        )

    return tf.data.Dataset.zip((data, coins)).map(mirror).prefetch(2)


def predict_logits(model: KerasModel, images: FloatArray) -> FloatArray:
    """Run a model up to its layer "logits": float32[N][28][28][1] -> float32[N][10]."""
    trunk = tf.keras.Model(model.input, model.get_layer("logits").output)
    return np.asarray(trunk.predict(images, batch_size=500, verbose=0), np.float32)


def evaluate(model: KerasModel, test: Split) -> float:
    """Share of the test images that a model classifies as their label, 0..1."""
    logits = predict_logits(model, to_network_input(test.images))
    return float(np.mean(np.argmax(logits, axis=1) == test.labels))


def fit(
    model: KerasModel,
    train: Split,
    test: Split,
    schedule: Schedule,
    seed: int,
    twin: KerasModel | None = None,
) -> dict[str, Any]:
    """Train a model in place and report on it.

    Args:
        model: from `build_binary` or `build_float_twin`.
        train: the 60,000 images.
        test: the 10,000 images; looked at once, after the last epoch.
        schedule: epochs, rates, distillation.
        seed: of the order of the images and of the mirroring.
        twin: trained float twin; needed if schedule.distill_weight > 0.

    Returns:
        JSON-ready log: schedule, per-epoch numbers, seconds, test accuracy (0..1).

    Raises:
        ValueError: if distillation is asked for without a twin.
    """
    if schedule.distill_weight > 0.0 and twin is None:
        raise ValueError(f"distill_weight={schedule.distill_weight} needs a float twin; got none")
    images = to_network_input(train.images)
    one_hot = np.eye(CLASS_COUNT, dtype=np.float32)[train.labels]
    if twin is None or schedule.distill_weight == 0.0:
        plain = mirrored = np.zeros_like(one_hot)
    else:
        plain = predict_logits(twin, images)
        mirrored = predict_logits(twin, images[:, :, ::-1])
    batches = make_batches(
        images,
        np.concatenate([one_hot, plain], axis=1),
        np.concatenate([one_hot, mirrored], axis=1),
        schedule.batch_size,
        seed,
    )
    steps = schedule.epochs * (len(images) // schedule.batch_size)
    rate = tf.keras.optimizers.schedules.CosineDecay(schedule.learning_rate, steps)
    trunk = tf.keras.Model(model.input, model.get_layer("logits").output)
    trunk.compile(tf.keras.optimizers.Adam(rate), make_loss(schedule), metrics=[accuracy])
    clock = EpochClock()
    start = time.perf_counter()
    history = trunk.fit(batches, epochs=schedule.epochs, verbose=2, callbacks=[clock]).history
    seconds = time.perf_counter() - start
    epochs = [
        {"epoch": i + 1, "loss": loss, "train_accuracy": share, "seconds": round(spent, 1)}
        for i, (loss, share, spent) in enumerate(
            zip(history["loss"], history["accuracy"], clock.seconds, strict=True)
        )
    ]
    test_accuracy = evaluate(model, test)
    print(f"{model.name}: test accuracy {test_accuracy:.4f} after {seconds:.0f} s", flush=True)
    return {
        "network": model.name,
        "schedule": asdict(schedule),
        "seed": seed,
        "seconds": round(seconds, 1),
        "test_accuracy": test_accuracy,
        "epochs": epochs,
    }


class EpochClock(tf.keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Keras callback that notes the wall-clock seconds of every epoch."""

    def __init__(self) -> None:
        """Start with no epoch noted."""
        super().__init__()
        self.seconds: list[float] = []
        self._start = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Stop the clock."""
        self.seconds.append(time.perf_counter() - self._start)
