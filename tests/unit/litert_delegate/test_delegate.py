"""``phonebit.litert.interpreter``: files of Larq Compute Engine in the stock LiteRT."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")

import phonebit.litert  # noqa: E402
import phonebit.plugins  # noqa: E402
from phonebit.litert import interpreters  # noqa: E402

pytestmark = pytest.mark.torch  # CI has LiteRT where PyTorch is
LCE = Path(__file__).parents[2] / "converter" / "fixtures" / "lce"
FILES = ("results_of_bits", "real_results", "integers", "ordinary_layers")


def run(interpreter: Any, x: Any) -> list[Any]:
    """Results for a batch, in the model's order."""
    given = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(given, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given, x)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def recorded(name: str) -> tuple[Any, list[Any]]:
    """Input and what the interpreter of Larq Compute Engine computed."""
    arrays = dict(np.load(LCE / f"{name}.npz"))
    return arrays.pop("x"), list(arrays.values())


@pytest.mark.parametrize("name", FILES)
def test_results_are_those_of_larqs_interpreter(name: str) -> None:
    """To the last bit; integers stand for numbers that it rounds differently."""
    tolerance = 1e-5 if name == "integers" else 0
    interpreter = phonebit.litert.interpreter(LCE / f"{name}.tflite", threads=1)
    x, expected = recorded(name)
    for result, array in zip(run(interpreter, x), expected, strict=True):
        np.testing.assert_allclose(result, array, rtol=0, atol=tolerance)


def test_the_stock_interpreter_alone_does_not_know_the_operators() -> None:
    with pytest.raises(RuntimeError, match="LceQuantize"):
        litert.Interpreter(model_path=str(LCE / "real_results.tflite")).allocate_tensors()


def test_batches_can_change() -> None:
    interpreter = phonebit.litert.interpreter(LCE / "results_of_bits.tflite", threads=2)
    x, expected = recorded("results_of_bits")
    for count in (1, 5, 2):
        repeated = np.resize(x, (count, *x.shape[1:]))
        for result, array in zip(run(interpreter, repeated), expected, strict=True):
            np.testing.assert_array_equal(result, np.resize(array, (count, *array.shape[1:])))


def test_interpreters_run_at_the_same_time() -> None:
    x, expected = recorded("real_results")
    made = [phonebit.litert.interpreter(LCE / "real_results.tflite", threads=1) for _ in range(4)]
    failures: list[int] = []

    def many(index: int) -> None:
        for _ in range(10):
            results = run(made[index], x)
            if not all(map(np.array_equal, results, expected)):
                failures.append(index)

    threads = [threading.Thread(target=many, args=(index,)) for index in range(len(made))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_inputs_that_a_network_does_not_take() -> None:
    interpreter = phonebit.litert.interpreter(LCE / "real_results.tflite", threads=1)
    x, expected = recorded("real_results")
    with pytest.raises(RuntimeError, match=r"PhoneBit: input 0: got another shape than the model"):
        run(interpreter, x[:, :-1])
    with pytest.raises(RuntimeError, match=r"NaN at image 0.*expected finite numbers"):
        run(interpreter, x * np.float32("nan"))
    np.testing.assert_array_equal(run(interpreter, x)[0], expected[0])


def test_models_and_arguments_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(phonebit.ConversionError, match="computes in int8"):
        phonebit.litert.interpreter(LCE / "all_in_int8.tflite")
    with pytest.raises(phonebit.InputError, match=r"threads \(expected 0 to 1024, got 'many'"):
        phonebit.litert.interpreter(LCE / "real_results.tflite", threads="many")  # type: ignore[arg-type]
    with pytest.raises(phonebit.ConversionError, match=r"absent\.tflite"):
        phonebit.litert.interpreter("absent.tflite")
    monkeypatch.setattr(interpreters, "OLDEST", (99, 0))
    with pytest.raises(phonebit.ConversionError, match=r"LiteRT is too old .*phonebit\[litert\]"):
        phonebit.litert.interpreter(LCE / "real_results.tflite")


WRONG = {
    "unknown": ({"speed": "1"}, "option 'speed' is unknown; expected file, form, tensors or"),
    "no form": ({}, "this does not name a file's tensors: ''"),
    "no file": ({"form": "bytes 8 in plain 1 out plain 1"}, "option file: '' has 0 bytes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_option_of_the_delegate_is_refused_in_a_sentence(case: str) -> None:
    options, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        litert.load_delegate(str(phonebit.plugins.library()), options)


def test_a_process_ends_well() -> None:
    program = """
import sys, numpy, phonebit.litert
interpreter = phonebit.litert.interpreter(sys.argv[1], threads=2)
interpreter.allocate_tensors()
(image,) = interpreter.get_input_details()
interpreter.set_tensor(image["index"], numpy.zeros(image["shape"], image["dtype"]))
interpreter.invoke()
print("well")
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, LCE / "real_results.tflite"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "well\n")
