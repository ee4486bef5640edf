"""Where models lie."""

from __future__ import annotations

import torch
from torch import nn

from tandem.nn.device import place


def test_accelerate_places_a_model_that_does_not_stay_on_the_cpu() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    placed = place(model, torch.device("meta"))
    assert placed is model
    assert {parameter.device.type for parameter in placed.parameters()} == {"meta"}
    assert placed.hf_device_map == {"": torch.device("meta")}


def test_on_the_cpu_a_model_stays_what_it_is() -> None:
    model = nn.Linear(2, 3)
    assert place(model, torch.device("cpu")) is model
    assert not hasattr(model, "hf_device_map")
