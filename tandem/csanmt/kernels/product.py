"""A layer of a model's size with made-up weights, to tell how fast a precision is."""

from __future__ import annotations

import numpy as np

from tandem.compiled.linear import Floats, Linear, kernel, linear, new_buffer, pack_linears
from tandem.compiled.tile import PLAIN
from tandem.csanmt.configuration import CsanmtConfig
from tandem.nn.precision import Precision

_FEW, _MANY = 4, 128  # hypotheses of one sentence, and of 32


@kernel
def _multiply(x: Floats, count: int, layers: Linear, out: Floats) -> None:
    linear(x, count, layers, 0, out, PLAIN)


class Product:
    """A feed-forward layer and rows for it.

    Args:
        config: Whose sizes it has.
        precision: What the product is computed in.
    """

    def __init__(self, config: CsanmtConfig, precision: Precision) -> None:
        """Draw weights and inputs."""
        random = np.random.default_rng(1)
        size, outputs = config.hidden_size, config.filter_size
        weight = random.standard_normal((outputs, size), np.float32)
        self._layers = pack_linears([weight], [np.zeros(outputs, np.float32)], precision)
        self._x, self._out = new_buffer(_MANY, size), new_buffer(_MANY, outputs)
        self._x[:] = random.standard_normal(self._x.shape, np.float32)

    def run(self) -> None:
        """Multiply."""
        for count in (_FEW, _MANY):
            _multiply(self._x, count, self._layers, self._out)
