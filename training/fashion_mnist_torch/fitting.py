"""One training run: cross-entropy, distillation from a twin, AdamW along a half cosine."""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from training.fashion_mnist_torch.images import TensorSplit
from training.fashion_mnist_torch.layers import is_binary

TEST_BATCH = 250


@dataclass(frozen=True)
class Schedule:
    """How one network is trained.

    Attributes:
        epochs: passes over the training images.
        batch_size: images per step; the incomplete last batch of an epoch is left out.
        learning_rate: AdamW's largest for real parameters: it rises during the first epoch, then
            falls to 0 along a half cosine.
        latent_rate: the same for latent weights, which may move faster: they count by their signs.
        weight_decay: AdamW's, of float weights.
        label_smoothing: share of the label that goes to all classes alike.
        distill_weight: share of the loss that compares with the twin, 0..1.
        temperature: divides both networks' logits in that share.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    latent_rate: float = 0.0
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    distill_weight: float = 0.0
    temperature: float = 1.0


def loss_of(logits: Tensor, labels: Tensor, twin_logits: Tensor | None, how: Schedule) -> Tensor:
    """Training loss, mean over the images.

    With z the logits, t the twin's, w and T from the schedule:
        loss = (1 - w) CE(label, softmax(z)) + w T^2 KL(softmax(t / T) | softmax(z / T)).
    T^2 keeps both gradients of one size, since d/dz of the second term shrinks with 1 / T^2.

    Args:
        logits: float32[N][10].
        labels: i64[N].
        twin_logits: float32[N][10], or None without distillation.
        how: smoothing, weight and temperature.

    Source: Hinton, Vinyals, Dean 2015, section 2.
    """
    hard = F.cross_entropy(logits, labels, label_smoothing=how.label_smoothing)
    if twin_logits is None:
        return hard
    soft = F.kl_div(
        F.log_softmax(logits / how.temperature, 1),
        F.log_softmax(twin_logits / how.temperature, 1),
        reduction="batchmean",
        log_target=True,
    )
    return (1 - how.distill_weight) * hard + how.distill_weight * how.temperature**2 * soft


@torch.no_grad()
def accuracy(network: nn.Module, test: TensorSplit) -> float:
    """Share of images classified as their label.

    Computed in float64, no kernel of which rounds what fits in 24 bits, as TF32 and Winograd's
    transforms do.
    """
    network.eval().double()
    right = 0
    for begin in range(0, len(test), TEST_BATCH):
        end = begin + TEST_BATCH
        logits = network(test.inputs(begin, end).double())
        right += int((logits.argmax(1) == test.labels[begin:end]).sum())
    network.float()
    return right / len(test)


def _optimizer(network: nn.Module, how: Schedule) -> torch.optim.AdamW:
    """Latent weights, biases and scales do not decay."""
    latent = _latent_weights(network)
    real = [p for p in network.parameters() if not any(p is weight for weight in latent)]
    groups = [
        {"params": latent, "peak": how.latent_rate, "weight_decay": 0.0},
        {"params": [p for p in real if p.dim() == 1], "peak": how.learning_rate, "weight_decay": 0},
        {"params": [p for p in real if p.dim() > 1], "peak": how.learning_rate},
    ]
    fused = real[0].is_cuda
    return torch.optim.AdamW(groups, how.learning_rate, weight_decay=how.weight_decay, fused=fused)


def _latent_weights(network: nn.Module) -> list[nn.Parameter]:
    weights = [layer.weight for layer in network.modules() if is_binary(layer)]
    return [weight for weight in weights if isinstance(weight, nn.Parameter)]


def _rate_at(step: int, steps_per_epoch: int, how: Schedule) -> float:
    """Share of the largest learning rate at a step."""
    steps = steps_per_epoch * how.epochs
    cosine = math.cos(math.pi * step / steps)
    return min(1.0, (step + 1) / steps_per_epoch) * 0.5 * (1 + cosine)


def fit(
    network: nn.Module, train: TensorSplit, how: Schedule, seed: int, twin: nn.Module | None = None
) -> dict[str, Any]:
    """Trains a network in place and leaves it in eval mode.

    Args:
        network: on the images' device.
        train: the training images.
        how: schedule.
        seed: of order, shifts and mirroring.
        twin: trained twin; needed if how.distill_weight > 0.

    Returns:
        JSON-ready log: schedule, seed, per-epoch numbers, seconds.

    Raises:
        ValueError: distillation without a twin, or fewer images than one batch.
    """
    if how.distill_weight > 0 and twin is None:
        raise ValueError(f"distill_weight={how.distill_weight} needs a float twin; got none")
    if len(train) < how.batch_size:
        raise ValueError(f"got {len(train)} images, expected at least a batch of {how.batch_size}")
    teacher = twin.eval() if twin is not None and how.distill_weight > 0 else None
    generator = torch.Generator(train.labels.device).manual_seed(seed)
    optimizer = _optimizer(network, how)
    epochs = []
    for epoch in range(how.epochs):
        start = time.perf_counter()
        loss, right = _run_epoch(network, optimizer, train, how, epoch, generator, teacher)
        seconds = round(time.perf_counter() - start, 2)
        row = {"epoch": epoch + 1, "loss": loss, "train_accuracy": right, "seconds": seconds}
        print(f"  {row}", flush=True)
        epochs.append(row)
    network.eval()
    total = round(sum(row["seconds"] for row in epochs), 1)
    return {"schedule": asdict(how), "seed": seed, "seconds": total, "epochs": epochs}


def _run_epoch(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    train: TensorSplit,
    how: Schedule,
    epoch: int,
    generator: torch.Generator,
    teacher: nn.Module | None,
) -> tuple[float, float]:
    """One pass; returns the mean loss and the share of right answers, which cost no extra wait."""
    network.train()
    latent = _latent_weights(network)
    device = train.labels.device
    order = torch.randperm(len(train), device=device, generator=generator)
    total, right = torch.zeros((), device=device), torch.zeros((), device=device)
    steps = len(train) // how.batch_size
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * _rate_at(epoch * steps + step, steps, how)
        chosen = order[step * how.batch_size : (step + 1) * how.batch_size]
        x, labels = train.augmented(chosen, generator), train.labels[chosen]
        with torch.no_grad():
            twin_logits = teacher(x) if teacher is not None else None
        logits = network(x)
        loss = loss_of(logits, labels, twin_logits, how)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for weight in latent:
                weight.clamp_(-1, 1)
            total += loss.detach()
            right += (logits.argmax(1) == labels).sum()
    return round(float(total) / steps, 5), round(float(right) / (steps * how.batch_size), 5)
