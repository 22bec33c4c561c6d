"""Images by the million: a network as a step of a data pipeline, and Ray Data around it."""

from phonebit.batch.predictor import BatchPredictor

__all__ = ["BatchPredictor"]
