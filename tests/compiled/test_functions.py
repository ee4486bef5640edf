"""Functions of one row of numbers against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from tandem.compiled.functions import add_exponentials, largest, layer_norm, softmax
from tandem.compiled.linear import Floats, kernel
from tandem.compiled.vectors import LANES, take_exponentials


@kernel
def exponentials(values: Floats, top: np.float32) -> np.float32:
    total: np.float32 = take_exponentials(values, top, values.shape[0] // LANES)
    return total


def test_exponentials_are_right_to_a_ten_millionth() -> None:
    values = np.linspace(-86, 0, 1000 * LANES).astype(np.float32)
    exact = np.exp(values.astype(np.float64))
    total = exponentials(values, np.float32(0))
    assert np.abs(values - exact).max() < 1e-7
    assert (np.abs(values - exact) / exact).max() < 1e-5
    assert total == pytest.approx(exact.sum(), rel=1e-5)


def test_exponentials_at_the_edges() -> None:
    values = np.zeros(LANES, np.float32)
    values[:4] = -np.inf, -1000, 0, np.nan
    exponentials(values, np.float32(0))
    assert values[:3].tolist() == [0, 0, 1]
    assert np.isnan(values[3])


@pytest.mark.parametrize("count", [1, 5, 16, 17, 100])
def test_softmax_of_the_first_numbers(count: int) -> None:
    whole = -(-count // LANES) * LANES
    values = (np.random.default_rng(count).standard_normal(whole + 3) * 9).astype(np.float32)
    shares = values.copy()
    softmax(shares, count)
    exact = np.exp(values[:count].astype(np.float64) - values[:count].max())
    np.testing.assert_allclose(shares[:count], exact / exact.sum(), rtol=1e-5, atol=1e-9)
    assert (shares[count:whole] == 0).all() and (shares[whole:] == values[whole:]).all()


def log_sum_exp(values: Floats, parts: int) -> float:
    highest, total = np.float32(-np.inf), np.float32(0)
    for part in np.array_split(values, parts):
        highest, total = add_exponentials(part, largest(part), highest, total)
    return float(highest + np.log(total))


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_a_sum_of_exponentials_in_parts(parts: int) -> None:
    values = (np.random.default_rng(parts).standard_normal(5608) * 8).astype(np.float32)
    values[-200:] = -np.inf
    assert largest(values) == values.max()
    exact = np.log(np.exp(values.astype(np.float64)).sum())
    assert log_sum_exp(values, parts) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 40, 99])
def test_a_sum_of_exponentials_tells_what_is_not_finite(value: float, place: int) -> None:
    values = np.zeros(100, np.float32)
    values[place] = value
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(log_sum_exp(values, 3))


def test_layer_norm_in_place() -> None:
    random = np.random.default_rng(4)
    x, weight, bias = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 100), 100, 100))
    x = x * 3 + 10
    exact = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * weight + bias
    untouched = x[4].copy()
    layer_norm(x, 4, weight, bias, 1e-6, x)
    np.testing.assert_allclose(x[:4], exact[:4], rtol=1e-4, atol=1e-5)
    assert (x[4] == untouched).all()
