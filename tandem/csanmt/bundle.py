"""TensorFlow checkpoints ("tensor bundles"), read and written without TensorFlow.

A bundle is an index file (a table of prefix-compressed keys in the LevelDB format whose values are small protocol
buffers) and data files that hold the raw little-endian tensors. Reading maps the data file into memory and touches only
the tensors that are asked for.

Source: tensorflow/core/util/tensor_bundle and tensorflow/core/lib/io/format of TensorFlow 2.21.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import google_crc32c
import numpy as np
import numpy.typing as npt

from tandem.core.errors import ModelError

_FOOTER_BYTES = 48
_TABLE_MAGIC = 0xDB4775248B80FB57
_BLOCK_TRAILER_BYTES = 5  # a type byte (0: uncompressed) and a masked crc32c
_CRC_MASK_DELTA = 0xA282EAD8
_CRC_CHUNK_BYTES = 16 << 20
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"}
_DTYPE_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor of the bundle lies."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc32c: int


class Bundle:
    """A checkpoint opened for reading.

    Args:
        prefix: Path without the endings, as TensorFlow names it: ".../tf_ckpts/ckpt-0".

    Raises:
        ModelError: The index is missing or damaged; the message names the file.
    """

    def __init__(self, prefix: Path) -> None:
        """Read the index; no tensor is touched."""
        self._prefix = prefix
        self.index_path = prefix.with_name(prefix.name + ".index")
        try:
            pairs = dict(_read_table(self.index_path.read_bytes()))
            header = _parse_message(pairs.pop(b""))
            self.entries = {key.decode(): _parse_entry(value) for key, value in pairs.items()}
        except FileNotFoundError:
            raise ModelError(f"{self.index_path} is missing: is the download complete?") from None
        except (KeyError, ValueError, IndexError, struct.error) as error:
            raise ModelError(f"{self.index_path} is not a readable checkpoint index: {error}") from error
        self._shards = _first(header, 1, 1)
        self._maps: dict[int, np.memmap[tuple[int], np.dtype[np.uint8]]] = {}

    def read(self, name: str, *, verify: bool = True) -> npt.NDArray[np.generic]:
        """Return a tensor as a view of the mapped file.

        Args:
            name: The variable's name.
            verify: Compare the stored crc32c; reads every page of the tensor once.

        Returns:
            The tensor with its stored shape and dtype; writing to it never reaches the file.

        Raises:
            ModelError: The variable is missing, its type unknown, the file too short or the checksum wrong.
        """
        entry = self.entries.get(name)
        if entry is None:
            raise ModelError(f"{self.index_path} has no variable {name}")
        if entry.dtype not in _DTYPES:
            raise ModelError(f"{self.index_path}: variable {name} has the unsupported type {entry.dtype}")
        data = self._map(entry.shard)
        end = entry.offset + entry.size
        if end > len(data):
            raise ModelError(
                f"{self.data_path(entry.shard)} ends at byte {len(data)}, but {name} lies at {entry.offset} to {end}: "
                "the download is incomplete"
            )
        raw = data[entry.offset : end]
        if verify and _masked_crc32c(raw) != entry.crc32c:
            raise ModelError(f"{self.data_path(entry.shard)}: the checksum of {name} is wrong: download it again")
        try:
            return raw.view(_DTYPES[entry.dtype]).reshape(entry.shape)
        except ValueError as error:
            raise ModelError(f"{self.index_path}: {name} does not have the size of its shape: {error}") from error

    def data_path(self, shard: int) -> Path:
        """Return the path of a data file."""
        return self._prefix.with_name(f"{self._prefix.name}.data-{shard:05d}-of-{self._shards:05d}")

    def _map(self, shard: int) -> np.memmap[tuple[int], np.dtype[np.uint8]]:
        if shard not in self._maps:
            path = self.data_path(shard)
            try:
                self._maps[shard] = np.memmap(path, dtype=np.uint8, mode="c")
            except (FileNotFoundError, ValueError) as error:
                raise ModelError(f"{path} is missing or empty: is the download complete?") from error
        return self._maps[shard]


def write_bundle(prefix: Path, tensors: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Write a checkpoint that TensorFlow and `Bundle` read; for tests and benchmarks with made-up weights.

    Args:
        prefix: Path without the endings; its folder exists.
        tensors: Arrays by name; written one after the other, so lazily made ones need not fit into memory together.
    """
    entries: list[tuple[bytes, bytes]] = [(b"", b"\x08\x01\x1a\x02\x08\x01")]  # one shard, little-endian, version 1
    offset = 0
    with prefix.with_name(prefix.name + ".data-00000-of-00001").open("wb") as data:
        for name in sorted(tensors, key=str.encode):
            array = np.asarray(tensors[name], order="C")
            raw = array.reshape(-1).view(np.uint8)
            data.write(raw.data)
            entry = Entry(_DTYPE_CODES[array.dtype], array.shape, 0, offset, raw.nbytes, _masked_crc32c(raw))
            entries.append((name.encode(), _render_entry(entry)))
            offset += raw.nbytes
    prefix.with_name(prefix.name + ".index").write_bytes(_render_table(entries))
    prefix.with_name("checkpoint").write_text(f'model_checkpoint_path: "{prefix.name}"\n', encoding="utf-8")


# -- checksums -------------------------------------------------------------------------------------------------------


def _masked_crc32c(raw: npt.NDArray[np.uint8]) -> int:
    crc = 0
    for start in range(0, raw.nbytes, _CRC_CHUNK_BYTES):
        crc = google_crc32c.extend(crc, raw[start : start + _CRC_CHUNK_BYTES].tobytes())
    return (((crc >> 15) | (crc << 17)) + _CRC_MASK_DELTA) & 0xFFFFFFFF


# -- the table -------------------------------------------------------------------------------------------------------


def _read_table(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a whole table in order."""
    if len(table) < _FOOTER_BYTES or struct.unpack("<Q", table[-8:])[0] != _TABLE_MAGIC:
        raise ValueError("the table's footer is damaged")
    footer = table[-_FOOTER_BYTES:]
    _, at = _varint(footer, 0)  # the meta index's offset and size: not needed
    _, at = _varint(footer, at)
    for _, handle in _read_block(table, *_block_handle(footer, at)):
        yield from _read_block(table, *_block_handle(handle, 0))


def _block_handle(buffer: bytes, at: int) -> tuple[int, int]:
    offset, at = _varint(buffer, at)
    return offset, _varint(buffer, at)[0]


def _read_block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    kind = table[offset + size]
    if kind != 0:
        raise ValueError(f"a block is compressed (type {kind})")
    stored = struct.unpack_from("<I", table, offset + size + 1)[0]
    if _masked_crc32c(np.frombuffer(table, np.uint8, size + 1, offset)) != stored:
        raise ValueError("a block's checksum is wrong")
    block = table[offset : offset + size]
    restarts = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 * (restarts + 1)
    at, key = 0, b""
    while at < end:
        shared, at = _varint(block, at)
        unshared, at = _varint(block, at)
        length, at = _varint(block, at)
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        yield key, block[at : at + length]
        at += length


def _render_table(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Render a table of one data block, without prefix compression."""
    pairs = list(entries)
    table = b""

    def append(block_entries: Iterable[tuple[bytes, bytes]]) -> bytes:
        nonlocal table
        block = b"".join(
            b"\x00" + _render_varint(len(key)) + _render_varint(len(value)) + key + value
            for key, value in block_entries
        )
        block += struct.pack("<II", 0, 1)  # one restart point, at the start
        handle = _render_varint(len(table)) + _render_varint(len(block))
        block += b"\x00"
        table += block + struct.pack("<I", _masked_crc32c(np.frombuffer(block, np.uint8)))
        return handle

    data_handle = append(pairs)
    meta_handle = append([])
    index_handle = append([(pairs[-1][0] + b"\x00", data_handle)])
    handles = (meta_handle + index_handle).ljust(_FOOTER_BYTES - 8, b"\x00")
    return table + handles + struct.pack("<Q", _TABLE_MAGIC)


# -- protocol buffers ------------------------------------------------------------------------------------------------


def _varint(buffer: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _render_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _parse_message(buffer: bytes) -> dict[int, list[int | bytes]]:
    """Parse one level of a protocol buffer: field number to its values."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(buffer):
        tag, at = _varint(buffer, at)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(buffer, at)
        elif kind == 2:
            length, at = _varint(buffer, at)
            value, at = buffer[at : at + length], at + length
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, at = int.from_bytes(buffer[at : at + width], "little"), at + width
        else:
            raise ValueError(f"wire type {kind}")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _first(fields: dict[int, list[int | bytes]], number: int, default: int = 0) -> int:
    value = fields.get(number, [default])[0]
    if not isinstance(value, int):
        raise ValueError(f"field {number} is not a number")  # noqa: TRY004 - a damaged file, not a caller's mistake
    return value


def _parse_entry(buffer: bytes) -> Entry:
    """Parse a BundleEntryProto."""
    fields = _parse_message(buffer)
    if 7 in fields:
        raise ValueError("a partitioned variable (slices) is not supported")
    shape_bytes = fields.get(2, [b""])[0]
    dims = _parse_message(shape_bytes if isinstance(shape_bytes, bytes) else b"").get(2, [])
    shape = tuple(_first(_parse_message(dim), 1) for dim in dims if isinstance(dim, bytes))
    numbers = (_first(fields, number) for number in (3, 4, 5, 6))
    return Entry(_first(fields, 1), shape, *numbers)


def _render_entry(entry: Entry) -> bytes:
    dims = b"".join(
        b"\x12" + _render_varint(len(dim)) + dim for dim in (b"\x08" + _render_varint(size) for size in entry.shape)
    )
    return (
        b"\x08" + _render_varint(entry.dtype)
        + b"\x12" + _render_varint(len(dims)) + dims
        + b"\x20" + _render_varint(entry.offset)
        + b"\x28" + _render_varint(entry.size)
        + b"\x35" + struct.pack("<I", entry.crc32c)
    )  # fmt: skip
