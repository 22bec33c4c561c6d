"""Does a ``.pbit`` file compute what its checkpoint does? Layer by layer, then end to end.

Real numbers in float32 round differently in every framework, and a value within rounding of zero
may then change its sign, which changes everything after it. So every op of the file is judged
*alone*: it is fed the source's own values, bits must be equal and float values within a tolerance.
A bit that differs although the float value it is the sign of is zero up to rounding is a *float
tie*; one where the source's sign is 0, which the file counts as +1, is an *exact zero*. Both are
counted and shown. Then whole inferences are compared, and a difference there must be explained by
them.

::

    report = verify("model.h5", "model.pbit")
    if not report.passed:
        print(report.first_mismatch or report.end_to_end)
"""

from phonebit.verification.layer_check import LayerCheck
from phonebit.verification.report import DeviceCheck, EndToEndCheck, VerificationReport
from phonebit.verification.source import open_source
from phonebit.verification.verify import steps, verify

__all__ = [
    "DeviceCheck",
    "EndToEndCheck",
    "LayerCheck",
    "VerificationReport",
    "open_source",
    "steps",
    "verify",
]
