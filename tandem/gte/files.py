"""Reading the small JSON files of a model directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tandem.core.errors import ModelError


def read_json(path: Path) -> Any:
    """Return a file's JSON value.

    Raises:
        ModelError: The file is missing or damaged; the message names it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path} is missing: is the download complete?") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {error}") from None


def read_object(path: Path) -> dict[str, Any]:
    """Return a file's JSON object.

    Raises:
        ModelError: The file is missing or damaged, or holds another kind of value.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise ModelError(f"{path} is damaged: it holds no JSON object")
    return value


def module_dir(model_dir: Path, kind: str, default: str) -> Path:
    """Return the folder of a sentence-transformers module, as `modules.json` has it.

    Args:
        model_dir: The model's directory.
        kind: Last part of the module's type: "Transformer", "Pooling", ...
        default: Folder inside `model_dir` where there is no `modules.json`, or no such module in it.
    """
    for module in read_modules(model_dir) or []:
        if module_kind(module) == kind:
            return model_dir / str(module.get("path", default))
    return model_dir / default


def read_modules(model_dir: Path) -> list[dict[str, Any]] | None:
    """Return the entries of `modules.json`, or None where there is no such file.

    Raises:
        ModelError: The file is damaged.
    """
    path = model_dir / "modules.json"
    if not path.is_file():
        return None
    modules = read_json(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise ModelError(f"{path} is damaged: it holds no list of modules")
    return modules


def module_kind(module: dict[str, Any]) -> str:
    """Return the class name in a module's type: the packages before it have moved between versions."""
    return str(module.get("type", "")).rsplit(".", 1)[-1]
