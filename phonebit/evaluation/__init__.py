"""How good a network is on a data set: accuracy, or mean average precision of detectors."""

from phonebit.evaluation.evaluate import evaluate
from phonebit.evaluation.result import Evaluation, ImageResult

__all__ = ["Evaluation", "ImageResult", "evaluate"]
