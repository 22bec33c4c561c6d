"""One training run, and the mean average precision of what comes out."""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from phonebit.detection import DetectionHead, Limits, find_boxes, mean_average_precision
from training.fashion_mnist_torch.layers import is_binary
from training.garment_scenes.loss import detection_loss
from training.garment_scenes.network import CLASS_COUNT
from training.garment_scenes.scene_set import SceneSet

TEST_BATCH: Final = 20
LIMITS: Final = Limits(score=0.01, overlap=0.45)
"""For mean average precision: the whole curve counts, also what is found with little confidence."""
WARM_UP_STEPS: Final = 200
UNTIMED_STEPS: Final = 20
TIMED_STEPS: Final = 40
"""A step's time is measured after the first ones, which choose algorithms and fill caches."""
LOG_STEPS: Final = 100
MAX_GRADIENT: Final = 20.0


@dataclass(frozen=True)
class Schedule:
    """How the network is trained.

    Attributes:
        steps: batches; 0: as many as fit into ``minutes``, which then depends on the machine.
        minutes: see ``steps``.
        batch_size: scenes per step.
        learning_rate: Adam's largest: it rises during ``WARM_UP_STEPS``, then falls to 0 along a
            half cosine.
        half: forward and backward pass in float16 with scaled gradients; sums of up to 2048 signs
            are exact even so.
    """

    steps: int
    minutes: float
    batch_size: int
    learning_rate: float
    half: bool


def rate_at(step: int, steps: int) -> float:
    """Share of the largest learning rate at a step."""
    return min(1.0, (step + 1) / WARM_UP_STEPS) * 0.5 * (1 + math.cos(math.pi * step / steps))


def fit(
    network: nn.Module, train: SceneSet, anchors: Tensor, how: Schedule, seed: int
) -> dict[str, Any]:
    """Trains a network in place and leaves it in eval mode.

    Args:
        network: on the scenes' device.
        train: the training scenes.
        anchors: float32[A][2] on the same device, in cells.
        how: schedule.
        seed: of order and mirroring.

    Returns:
        JSON-ready log: schedule, seed, steps, mean loss of every ``LOG_STEPS`` steps, seconds.

    Raises:
        ValueError: fewer scenes than one batch, or a loss that is no number.
    """
    if len(train) < how.batch_size:
        raise ValueError(f"got {len(train)} scenes, expected at least one batch: {how.batch_size}")
    device = train.images.device
    generator = torch.Generator(device).manual_seed(seed)
    latent = [layer.weight for layer in network.modules() if is_binary(layer)]
    optimizer = torch.optim.Adam(network.parameters(), how.learning_rate)
    scaler = torch.amp.GradScaler(device.type, enabled=how.half)
    network.train()
    pace = _Pace(how)
    order = torch.empty(0, dtype=torch.long, device=device)
    rows: list[dict[str, float]] = []
    total, step = torch.zeros((), device=device), 0
    while step < pace.steps:
        for group in optimizer.param_groups:
            group["lr"] = how.learning_rate * rate_at(step, pace.steps)
        if len(order) < how.batch_size:
            order = torch.randperm(len(train), device=device, generator=generator)
        chosen, order = order[: how.batch_size], order[how.batch_size :]
        x, targets = train.augmented(chosen, generator)
        with torch.autocast(device.type, torch.float16, enabled=how.half):
            outputs = network(x)
        loss = detection_loss(outputs.float(), targets, anchors)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(network.parameters(), MAX_GRADIENT)
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            for weight in latent:
                weight.clamp_(-1, 1)
            total += loss.detach()
        step += 1
        pace.after(step, device)
        if step % LOG_STEPS == 0 or step == pace.steps:
            mean = float(total) / ((step - 1) % LOG_STEPS + 1)
            if not math.isfinite(mean):
                raise ValueError(f"the loss is {mean} at step {step}; lower the learning rate")
            total.zero_()
            rows.append({"step": step, "loss": round(mean, 4), "seconds": pace.seconds()})
            print(f"  {rows[-1]} of {pace.steps}", flush=True)
    network.eval()
    return {
        "schedule": asdict(how),
        "seed": seed,
        "steps": step,
        "scenes_seen": step * how.batch_size,
        "seconds": pace.seconds(),
        "loss": rows,
    }


class _Pace:
    """How many steps there are: as asked, or as many as fit into the asked time."""

    def __init__(self, how: Schedule) -> None:
        self.how = how
        self.start = self.timed_from = time.perf_counter()
        # Until a step's time is known any number will do that the warm-up does not depend on.
        self.steps = how.steps or 1_000_000

    def seconds(self) -> float:
        """Since the start."""
        return round(time.perf_counter() - self.start, 1)

    def after(self, step: int, device: torch.device) -> None:
        """Looks at the clock where it must."""
        if self.how.steps or step not in (UNTIMED_STEPS, UNTIMED_STEPS + TIMED_STEPS):
            return
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        now = time.perf_counter()
        if step == UNTIMED_STEPS:
            self.timed_from = now
            return
        each = (now - self.timed_from) / TIMED_STEPS
        left = self.how.minutes * 60 - (now - self.start)
        self.steps = step + max(1, int(left / each))
        print(f"  {each * 1e3:.1f} ms a step: {self.steps} steps", flush=True)


@torch.no_grad()
def head_outputs(network: nn.Module, scenes: SceneSet) -> NDArray[np.float64]:
    """What the last layer gives, (N, 13, 13, 75).

    In float64, no kernel of which rounds what has 24 bits, as TF32 and Winograd's transforms do.
    """
    network.double()
    outputs = [
        network(scenes.inputs(begin, begin + TEST_BATCH).double()).permute(0, 2, 3, 1).cpu()
        for begin in range(0, len(scenes), TEST_BATCH)
    ]
    network.float()
    return np.asarray(torch.cat(outputs).numpy(), np.float64)


def precision_of(
    outputs: NDArray[np.floating[Any]], scenes: SceneSet, head: DetectionHead
) -> tuple[float, list[float]]:
    """Mean average precision at an overlap of 0.5, and that of each class."""
    found = [find_boxes(output, head, LIMITS) for output in outputs]
    return mean_average_precision(found, scenes.truths, CLASS_COUNT)
