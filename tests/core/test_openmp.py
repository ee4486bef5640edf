"""What torch's threads do while they wait, unless the environment says otherwise."""

from __future__ import annotations

import pytest

from tandem.core import openmp


def test_the_defaults_are_set_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, str] = {}
    monkeypatch.setattr("os.environ", environment)
    openmp.set_defaults()
    assert environment == openmp.ENVIRONMENT
    for name in openmp.ENVIRONMENT:
        environment.clear()
        environment[name] = "active"
        openmp.set_defaults()
        assert environment == {name: "active"}
