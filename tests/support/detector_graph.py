"""A detector whose answers are known without training: it finds bright red and blue cells."""

from __future__ import annotations

import numpy as np

from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import AveragePool2D, Conv2D, Elementwise
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.detection import DetectionHead
from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing, Resize
from support.engine_net import Net

SIDE = 64
CELL = 16
LABELS = ["red thing", "blue thing"]
HEAD = DetectionHead(((1.0, 1.0),))


def cell_detector(resize: Resize = Resize.LETTERBOX) -> Graph:
    """64x64x3 levels -> mean of each 16x16 cell -> one anchor of a cell's size, two classes.

    Boxes are the cells themselves: x = y = 0 is the middle, w = h = 0 the anchor's size.
    Objectness is (red + blue) / 10 - 15, so a cell that is filled with either has 10.5 and an empty
    one -15; classes are (red - blue) / 16 and its negative.
    """
    net = Net("cell_detector")
    x = net.input("picture", (SIDE, SIDE, 3), DataType.U8)
    one, zero = np.ones(3, np.float32), np.zeros(3, np.float32)
    real = net.op("levels", Elementwise(Epilogue([ScaleBias(one, zero)])), x)
    mean = net.op("mean", AveragePool2D(Window((CELL, CELL), (CELL, CELL))), real)
    weights = np.zeros((7, 1, 1, 3), np.float32)
    weights[4, 0, 0] = (0.1, 0, 0.1)
    weights[5, 0, 0], weights[6, 0, 0] = (1 / 16, 0, -1 / 16), (-1 / 16, 0, 1 / 16)
    bias = np.array([0, 0, 0, 0, -15, 0, 0], np.float32)
    steps = Epilogue([ScaleBias(np.ones(7, np.float32), bias)])
    head = Conv2D(weights, Window((1, 1)), epilogue=steps)
    graph = net.done(net.op("boxes", head, mean))
    graph.labels = list(LABELS)
    graph.preprocessing = {"picture": Preprocessing((0.0, 255.0), resize=resize)}
    graph.detection = {graph.outputs[0]: HEAD}
    return graph
