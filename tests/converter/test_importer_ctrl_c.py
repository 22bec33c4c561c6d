"""Ctrl-C while a network is converted comes through soon, and the user's module stays whole."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from onnx import helper
from test_budget import computed, filled

from phonebit.converter.convert import convert
from phonebit.converter.importers.errors import interruptible, named
from phonebit.errors import ConversionError
from support.onnx_models import integers

UNTIL_SEEN_S = 1.0
"""Of processor time; 0.3 s where nothing else runs."""


def interrupted_everywhere(convert_it: Callable[[], Any], moments: int) -> None:
    """Interrupts a conversion at many moments, which are counted in its processor time."""

    def handler(*_: object) -> None:
        seen.append(time.process_time())
        raise KeyboardInterrupt

    convert_it()
    begin = time.process_time()
    convert_it()
    total_s = time.process_time() - begin
    usual = signal.signal(signal.SIGPROF, handler)
    try:
        for moment in range(moments):
            seen: list[float] = []
            after_s = total_s * (moment + 0.5) / moments / 2  # later ones may come after its end
            begin = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, after_s)
            with pytest.raises(KeyboardInterrupt):
                convert_it()
            assert seen[0] - begin < after_s + UNTIL_SEEN_S, moment
            assert time.process_time() - seen[0] < UNTIL_SEEN_S, moment
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Erf", ["c"], ["k"]),
        helper.make_node("Einsum", ["c", "c"], ["k"], equation="i,j->"),
    ],
    ids=lambda node: str(node.op_type),
)
def test_while_constants_are_folded(node: Any) -> None:
    """Each step is as large as a file may ask for."""
    size = {"Erf": 1 << 22, "Einsum": 1 << 14}[node.op_type]
    model = computed(filled(np.float32), node, s=integers(size))
    interrupted_everywhere(lambda: convert(model), 3)


@contextmanager
def fails_to_clean_up() -> Iterator[None]:
    try:
        yield
    finally:
        raise AssertionError("stack is empty")


def test_a_framework_that_fails_after_ctrl_c_does_not_hide_it() -> None:
    with pytest.raises(KeyboardInterrupt), named("net"), fails_to_clean_up():
        raise KeyboardInterrupt
    message = "AssertionError: stack is empty"
    with pytest.raises(ConversionError, match=message), named("net"), fails_to_clean_up():
        raise ValueError


def test_a_conversion_after_ctrl_c_is_not_interrupted_by_it() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(ValueError, match="could not convert"), interruptible():
            float("of its own")


@pytest.mark.torch
class TestTorch:
    """Modules of PyTorch."""

    @staticmethod
    def module() -> Any:
        """Signs, norms and layers in place; its forward function is PyTorch's own."""
        from torch import nn
        from torch_checks import Lambda

        def block(m: Any, x: Any) -> Any:
            return m.relu(m.norm(m.conv(x.sign())))

        parts = [
            Lambda(block, conv=nn.Conv2d(8, 8, 1), norm=nn.BatchNorm2d(8), relu=nn.ReLU(True))
            for _ in range(4)
        ]
        return nn.Sequential(*parts).eval()

    def test_while_a_module_is_traced(self) -> None:
        import torch

        module, example = self.module(), torch.zeros(1, 8, 4, 4)
        before = [name for name, _ in module.named_parameters()]
        interrupted_everywhere(lambda: convert(module, example, check=False), 12)
        assert [name for name, _ in module.named_parameters()] == before

    def test_the_tracer_fails_to_clean_up(self) -> None:
        import torch
        from torch_checks import Lambda

        def forward(_: Any, x: Any) -> Any:
            with fails_to_clean_up():
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            convert(Lambda(forward), torch.zeros(1, 8, 4, 4))

    def test_the_tracer_leaves_what_it_replaced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        from phonebit.converter.importers.torch.export import evaluation_mode

        called = torch.nn.Module.__call__
        with pytest.raises(KeyboardInterrupt), evaluation_mode(self.module()):
            monkeypatch.setattr(torch.nn.Module, "__call__", lambda _, x: x)
            raise KeyboardInterrupt
        assert torch.nn.Module.__call__ is called

    def test_a_module_is_whole_after_ctrl_c_while_it_is_put_back(self) -> None:
        from phonebit.converter.importers.torch.export import evaluation_mode

        module = self.module().train()
        names = [name for name, _ in module.named_parameters()]

        def interrupt(frame: Any, event: str, argument: Any) -> None:
            if event == "c_call" and argument.__name__ == "update":
                sys.setprofile(None)
                raise KeyboardInterrupt

        def convert_it() -> None:
            with evaluation_mode(module):
                sys.setprofile(interrupt)

        with pytest.raises(KeyboardInterrupt):
            convert_it()
        assert [name for name, _ in module.named_parameters()] == names
        assert all(part.training for part in module.modules())
