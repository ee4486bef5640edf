"""Settings: one frozen object, read once from the environment. The only place that looks there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tandem.core.errors import SettingsError

ROOT = Path(__file__).resolve().parents[2]


def _parse_models(value: str) -> str:
    if not [name for name in value.split(",") if name.strip()]:
        raise ValueError("names no model")
    return value


Models = Annotated[str, AfterValidator(_parse_models)]
Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]


class Settings(BaseModel):
    """Everything that can be set, each by the environment variable of the same name in capitals."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 serves every interface.")
    port: int = Field(5000, ge=1, le=65535, description="Port to listen on.")
    translation_model: Models = Field(
        "demo",
        description="demo, a directory, or a hub id (iic/… from ModelScope, org/name from Hugging Face); "
        "several, one a direction, are separated by commas.",
    )
    embedding_model: Models = Field("demo", description="demo, a directory, or a hub id.")
    cache_dir: Path = Field(
        ROOT / "cache", description="Where downloaded and converted models and measured choices are kept."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto takes CUDA where there is one; cuda without CUDA stops the start."
    )
    precision: Literal["auto", "float32", "float16", "bfloat16", "int8"] = Field(
        "auto",
        description="What matrices are multiplied in. auto: float16 on CUDA; on a CPU bfloat16 where the hardware "
        "multiplies it and it measures faster, else float32.",
    )
    cuda_graphs: Literal["auto", "off"] = Field(
        "auto",
        description="auto replays recorded decoding steps on CUDA and claims the memory of their caches at the start; "
        "off runs every step anew and lets the caches grow.",
    )
    threads: int = Field(
        0,
        ge=0,
        description="Threads a batch computes with on a CPU; 0 measures once whether one or all cores are faster.",
    )
    max_batch_size: Positive = Field(32, description="Sentences or texts computed together; 1 computes one at a time.")
    max_batch_tokens: Positive = Field(8192, description="Padded tokens computed together.")
    batching: Literal["continuous", "static"] = Field(
        "continuous",
        description="continuous lets sentences join a running batch at its next step; static, for comparison only, "
        "closes a batch once it has started.",
    )
    max_wait_ms: float = Field(
        0.0, ge=0, description="How long the first of a batch may be held back to let others arrive, in milliseconds."
    )
    max_queue: Positive = Field(1024, description="Sentences that may wait; more are answered 429.")
    max_text_chars: Positive = Field(20_000, description="Longest text, in characters.")
    max_items: Positive = Field(2500, description="Most texts of one request.")
    bulk_segments: Positive = Field(
        16,
        description="A request with more uncached sentences than this is bulk work, which interactive work precedes.",
    )
    redis_url: str = Field("", description="redis://… of the shared cache; empty keeps the cache in this process.")
    cache_ttl_s: Seconds = Field(86_400.0, description="How long a cached result is kept, in seconds.")
    memory_cache_bytes: int = Field(
        64 << 20, ge=0, description="Size of the cache in this process when there is no Redis; 0 turns it off."
    )
    request_timeout_s: Seconds = Field(30.0, description="A request is answered 504 after so many seconds.")
    drain_timeout_s: Seconds = Field(
        30.0, description="How long a stopping server finishes what it has accepted, in seconds."
    )
    max_file_bytes: int = Field(
        20 << 20, gt=0, le=60 << 20, description="Largest file that is translated, in bytes; at most 60 MiB."
    )
    max_jobs: Positive = Field(
        100, description="Documents kept at a time, finished ones too; with MAX_FILE_BYTES it bounds the disk space."
    )
    job_ttl_s: Seconds = Field(3600.0, description="How long a translated document is kept, in seconds.")
    keys_required: bool = Field(
        False, description="true answers only requests with an API key that `tandem keys add` made."
    )
    keys_db: Path = Field(ROOT / "cache" / "keys.sqlite3", description="Database of the API keys; kept as hashes.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe log records shown."
    )


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings.

    Args:
        environment: Variables by name; the process's own by default. An empty value counts as not set.

    Raises:
        SettingsError: A value is impossible; the message names setting, value and reason.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, Any] = {
        name: environment[name.upper()] for name in Settings.model_fields if environment.get(name.upper())
    }
    if "log_level" in given:
        given["log_level"] = given["log_level"].upper()
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = [
            f"{str(problem['loc'][0]).upper()}={problem['input']!r}: {problem['msg']}" for problem in error.errors()
        ]
        raise SettingsError("; ".join(problems)) from None


def render_table() -> str:
    """Return the Markdown table of all settings, for the documentation."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = field.default
        if isinstance(default, Path):
            default = f"./{default.relative_to(ROOT)}"
        rows.append(f"| `{name.upper()}` | {f'`{default}`' if default != '' else ''} | {field.description} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(
        "# Settings\n\nAll come from the environment and are read once, at the start. An impossible value stops the\n"
        "start and names itself. This table is made by `make settings`; a test compares it with the code.\n"
    )
    print(render_table(), end="")
