"""Vectors on their way out: cut, normalised, compared."""

from __future__ import annotations

import base64

import numpy as np

from tandem.services.prediction import Vector


def normalise(vector: Vector) -> Vector:
    """Return a vector of length 1; one of length 0 as it is."""
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


def shorten(vector: Vector, dimensions: int) -> Vector:
    """Return the first numbers of a vector, normalised again."""
    return normalise(vector[:dimensions])


def encode_base64(vector: Vector) -> str:
    """Return a vector's little-endian float32 in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def similarity(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two vectors."""
    return float(normalise(one) @ normalise(other))
