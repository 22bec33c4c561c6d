"""LiteRT interpreters whose model runs on PhoneBit.

::

    import phonebit.litert

    interpreter = phonebit.litert.interpreter("network.tflite", threads=2)
"""

from phonebit.litert.interpreters import interpreter

__all__ = ["interpreter"]
