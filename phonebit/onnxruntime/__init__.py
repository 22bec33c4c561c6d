"""ONNX Runtime sessions whose binary parts run on PhoneBit.

::

    import phonebit.onnxruntime

    session = phonebit.onnxruntime.session("network.onnx", threads=2)
    scores = session.run(None, {"image": images})[0]
"""

from phonebit.onnxruntime.sessions import compile_model, session
from phonebit.plugins import library

__all__ = ["compile_model", "library", "session"]
