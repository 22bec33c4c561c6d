"""Pictures of predictions: predicted against measured, on logarithmic axes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from phonebit.errors import PhoneBitError
from phonebit.output_files import PNG, SVG, write_output
from phonebit.planner.evaluation import Prediction


def plot_predictions(
    folder: Path,
    predictions: Sequence[Prediction],
    *,
    inputs: Iterable[Path] = (),
    replace_any: bool = False,
) -> list[Path]:
    """One picture for each predictor and processor, as PNG and as SVG.

    Args:
        folder: It is made if it is not there.
        predictions: What to draw.
        inputs: Files that must stay, as that of the samples.
        replace_any: Also replace files that are no such images.

    Returns:
        The files.

    Raises:
        InputError: An image would replace an input or a file of another kind.
        PhoneBitError: matplotlib is not installed.
        OSError: The folder cannot be written to.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PhoneBitError(
            "matplotlib is not installed", hint="pip install 'phonebit[planner]'"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for prediction in predictions:
        figure = Figure(figsize=(5.5, 5), layout="constrained")
        axes = figure.subplots()
        families = np.array(prediction.families)
        for place, family in enumerate(dict.fromkeys(prediction.families)):
            own = families == family
            measured, predicted = prediction.measured_us[own], prediction.predicted_us[own]
            axes.scatter(measured, predicted, s=9, alpha=0.7, color=f"C{place % 10}", label=family)
        limits = np.array([prediction.measured_us.min() / 1.5, prediction.measured_us.max() * 1.5])
        axes.plot(limits, limits, color="black", linewidth=0.8)
        for factor in (0.9, 1.1):
            axes.plot(limits, factor * limits, color="black", linewidth=0.5, linestyle=":")
        side = prediction.processor.name + (
            f", {prediction.threads} threads" if prediction.threads else ""
        )
        accuracy = prediction.accuracies()[0]
        axes.set(
            xscale="log",
            yscale="log",
            xlim=tuple(limits),
            ylim=tuple(limits),
            xlabel="measured, microseconds",
            ylabel="predicted, microseconds",
            title=f"{prediction.predictor} on the {side}: MAPE {accuracy.mape:.1%}",
        )
        axes.legend(fontsize=6)
        name = f"{prediction.predictor} on {side}".lower().replace(",", "").replace(" ", "-")
        for suffix, kind in (("png", PNG), ("svg", SVG)):
            written.append(folder / f"{name}.{suffix}")
            stream = io.BytesIO()
            figure.savefig(stream, format=suffix, dpi=130)
            write_output(written[-1], stream.getvalue(), kind, inputs, replace_any)
    return written
