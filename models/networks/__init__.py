"""Networks with seeded weights, as source graphs: no framework, no download.

``NETWORKS`` maps a name to a definition; ``definition("binary")`` is the network,
``definition("float")`` its float twin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from phonebit.converter.ir import Graph
from phonebit.models.networks.alexnet import alexnet
from phonebit.models.networks.builder import Form
from phonebit.models.networks.vgg16 import vgg16
from phonebit.models.networks.yolov2_tiny import yolov2_tiny

Definition = Callable[[Form], Graph]

NETWORKS: Final[dict[str, Definition]] = {
    "alexnet": alexnet,
    "yolov2_tiny": yolov2_tiny,
    "vgg16": vgg16,
}
INPUT_RANGE: Final = (-1.0, 1.0)
"""What levels 0 and 255 of a picture are to every one of them."""
