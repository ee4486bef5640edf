"""Number formats the models compute in, and which device can do what."""

from __future__ import annotations

import contextlib
from enum import StrEnum

import torch

from tandem.core.errors import SettingsError


class Precision(StrEnum):
    """A format for weights and matrix products; the residual stream, norms and log-probs are float32 in all of them."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights that stay unquantised, and of the products' results."""
        return {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(self.value, torch.float32)


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise SettingsError when a device cannot compute in a precision; the message says what it can do."""
    if device.type == "cuda":
        if precision is Precision.INT8:
            raise SettingsError("PRECISION=int8 runs on a CPU only; on CUDA take float16, bfloat16 or float32")
        if precision is Precision.BFLOAT16 and not torch.cuda.is_bf16_supported(including_emulation=False):
            raise SettingsError("PRECISION=bfloat16: this GPU has no bfloat16; take float16 or float32")
    elif precision is Precision.INT8 and "onednn" not in torch.backends.quantized.supported_engines:
        raise SettingsError("PRECISION=int8: this build of torch has no oneDNN; take float32")


def has_fast_bfloat16() -> bool:
    """Say whether this CPU multiplies bfloat16 in hardware (AVX512-BF16 or AMX)."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Return the context a forward pass runs in: autocast in half precision, nothing otherwise."""
    return half_autocast(precision.dtype, device)


def full_precision(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Return a context without autocast; an empty one where none is on, for entering one is not free."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()


def half_autocast(dtype: torch.dtype, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Return autocast to a half type, or, for another type, a context that changes nothing."""
    if dtype in (torch.float16, torch.bfloat16):
        return torch.autocast(device.type, dtype=dtype, cache_enabled=False)
    return contextlib.nullcontext()
