"""A loaded network layer by layer: values, times, kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from phonebit.errors import InputError
from phonebit.layer_info import LayerProfile, PartProfile, make_profiles
from phonebit.network.description import NetworkDescription
from phonebit.network.input_checks import Array, ArrayLike, check_inputs, explained

if TYPE_CHECKING:
    from phonebit.planner.plan.execution_plan import PlannedPart


class NetworkLayers(NetworkDescription):
    """Base of ``Network``: what concerns single layers."""

    def activations(self, x: ArrayLike | Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Run the network and keep every intermediate tensor, for debugging.

        Args:
            x: as for ``forward``.

        Returns:
            Arrays (N, height, width, channels) by tensor name: float32, uint8, or int8 of -1, +1.

        Raises:
            InputError: as for ``forward``.
        """
        arrays = check_inputs(x, self._inputs, self._preprocessing)
        with explained(arrays, self._inputs):
            return dict(self._engine.activations(arrays))

    def profile(
        self, x: ArrayLike | Mapping[str, ArrayLike], repeats: int = 10
    ) -> list[LayerProfile]:
        """Measure each layer on a batch.

        Args:
            x: as for ``forward``.
            repeats: runs to take the median of, at least 1.

        Returns:
            One entry a layer, in execution order.

        Raises:
            InputError: as for ``forward``, or if ``repeats`` is below 1.
        """
        if repeats < 1:
            raise InputError("too few", where="repeats", expected="at least 1", got=repeats)
        arrays = check_inputs(x, self._inputs, self._preprocessing)
        with explained(arrays, self._inputs):
            milliseconds = self._engine.profile(arrays, repeats)
        return make_profiles(self._layers, milliseconds, len(arrays[0]))

    def profile_parts(self, repeats: int = 10) -> list[PartProfile]:
        """Measure what each processor of "gpu+cpu" computes of each layer, as the plan says.

        Layers are measured one by one on random content.

        Args:
            repeats: runs to take the minimum of, at least 1.

        Returns:
            One entry per part of the plan, in its order; none on one processor.

        Raises:
            InputError: if ``repeats`` is below 1.
            DeviceError: if the GPU fails.
        """
        if repeats < 1:
            raise InputError("too few", where="repeats", expected="at least 1", got=repeats)
        parts = self.plan.parts if self.plan else ()
        shares: dict[int, dict[str, PlannedPart]] = {}
        for part in parts:
            shares.setdefault(part.layer, {})[part.processor.name.lower()] = part
        times = {}
        for index, both in shares.items():
            cpu, gpu = (both[s].part if s in both else None for s in ("cpu", "gpu"))
            times[index] = self._engine.measure_layer(index, cpu, gpu, repeats)
        profiles = []
        for part in parts:
            side = part.processor.name.lower()
            latency_ms = times[part.layer][f"{side}_us"] / 1e3
            profiles.append(PartProfile(part.stage, side, part.layer, part.part, latency_ms))
        return profiles

    def run_layer(self, index: int, operands: list[Array]) -> dict[str, Array]:
        """Run one layer alone, on given operands; ``phonebit verify`` is built on this.

        Args:
            index: place of the layer in ``layers``.
            operands: arrays (N, height, width, channels) in the order of the layer's ``inputs``:
                float32, uint8, or int8 of -1 and +1; of values that the layers before can give
                (a layer that reads bits as floats may count on -1 and +1).

        Returns:
            Its outputs by tensor name.

        Raises:
            InputError: if ``index`` or an operand does not fit the layer.
        """
        self._check_layer(index)
        return dict(self._engine.run_op(index, [np.ascontiguousarray(x) for x in operands]))

    def candidates(self, index: int) -> list[str]:
        """Kernels, with their parameters, that could serve a layer on this OpenCL device.

        Args:
            index: place of the layer in ``layers``.

        Returns:
            Choices as a tuning table writes them, the one in use first; none on the CPU.

        Raises:
            InputError: if there is no such layer.
        """
        self._check_layer(index)
        return list(self._engine.candidates(index))

    def programs(self, index: int) -> list[tuple[str, str]]:
        """The OpenCL programs that compute a layer on this device.

        Args:
            index: place of the layer in ``layers``.

        Returns:
            Kernel and program text, as the driver compiles it, of each launch in order.

        Raises:
            InputError: if there is no such layer, or the network is on another kind of device.
        """
        self._check_layer(index)
        return self._engine.programs(index)

    def measure_choice(
        self, index: int, choice: str, batch: int = 1, repeats: int = 10
    ) -> tuple[float, bool]:
        """Measure one of a layer's ``candidates``; the network itself stays as it is.

        Args:
            index: place of the layer in ``layers``.
            choice: the candidate.
            batch: inputs at a time.
            repeats: runs to take the median of.

        Returns:
            Milliseconds on the device, and whether it gives what the kernel in use gives.

        Raises:
            InputError: if there is no such layer or candidate.
            DeviceError: if the device cannot build or run it.
        """
        self._check_layer(index)
        return self._engine.measure_choice(index, choice, batch, repeats)

    def tuning_line(self, index: int, choice: str) -> str:
        """The line of a tuning table that makes a choice serve layers of this shape.

        Args:
            index: place of the layer in ``layers``.
            choice: one of its ``candidates``.

        Returns:
            Op, shape, vendor, family, device, kernel, parameters.

        Raises:
            InputError: if there is no such layer or candidate.
        """
        self._check_layer(index)
        return self._engine.tuning_line(index, choice)

    def _check_layer(self, index: int) -> None:
        if not 0 <= index < len(self._layers):
            raise InputError(
                "no such layer", where="index", expected=f"0..{len(self._layers) - 1}", got=index
            )
