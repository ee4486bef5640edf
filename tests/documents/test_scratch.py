"""Folders of temporary files: deleted at the end, and after a crash by the next process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tandem.services.scratch import ScratchFolder, remove_abandoned

_PREFIX = "tandem-scratch-test-"


@pytest.fixture
def folder() -> ScratchFolder:
    """A folder in use."""
    return ScratchFolder(_PREFIX)


def _age(path: Path) -> None:
    os.utime(path, (1, 1))


def test_a_folder_is_removed_with_its_files(folder: ScratchFolder) -> None:
    (folder.path / "a").write_text("x")
    folder.remove()
    assert not folder.path.exists()


def test_a_folder_in_use_is_left_alone_however_old(folder: ScratchFolder) -> None:
    _age(folder.path)
    remove_abandoned(folder.path.parent, _PREFIX)
    assert folder.path.exists()
    folder.remove()


def test_a_folder_that_nobody_holds_is_removed_once_it_is_old(tmp_path: Path) -> None:
    left, young = tmp_path / f"{_PREFIX}left", tmp_path / f"{_PREFIX}young"
    for made in (left, young):
        made.mkdir()
        (made / "upload").write_text("x")
    _age(left)
    remove_abandoned(tmp_path, _PREFIX)
    assert (left.exists(), young.exists()) == (False, True)


def test_a_link_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").write_text("x")
    (tmp_path / f"{_PREFIX}link").symlink_to(other)
    _age(other)
    remove_abandoned(tmp_path, _PREFIX)
    assert (other / "kept").exists()
