"""The innermost loop of a matrix product: a tile of the result that stays in registers until it is written.

numba compiles loops well, but does not keep an array of sums in registers; so this one loop is written as LLVM's vector
instructions. LLVM makes of them what the processor has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tandem.compiled.vectors import (
    FEATURES,
    FLOATS,
    LANES,
    data_of,
    integer,
    load,
    multiply_add,
    prefetch,
    spread,
    store,
)

# Registers across a tile: 4 x 4 of 32 registers, or 4 x 2 of 16.
_VECTORS = 4 if LANES != 8 else 2
TILE_ROWS = 4
TILE_COLUMNS = LANES * _VECTORS

# Whether the processor multiplies pairs of bfloat16, or quadruples of 8-bit integers, in one instruction.
HAS_BFLOAT16 = LANES == 16 and bool(FEATURES.get("avx512bf16"))
HAS_INT8 = LANES == 16 and bool(FEATURES.get("avx512vnni"))

# What follows a product before it is written.
PLAIN, RELU, ADD = 0, 1, 2


@intrinsic  # type: ignore[untyped-decorator]
def multiply_tile(
    typing_context: Any, x: Any, row: Any, weight: Any, panel: Any, bias: Any, out: Any, column: Any, then: Any
) -> Any:
    """Write TILE_ROWS rows of `x` times a panel of packed weights, plus a bias, or what `then` makes of it.

    Inputs and weights are words of 32 bits: a float32, or two bfloat16 (in uint32). A word of `x` meets the word of
    `weight` for the same inputs.

    Args:
        typing_context: numba's.
        x: [M, at least K], contiguous; rows `row` to `row + TILE_ROWS` exist.
        row: The first of the rows, of `out` too.
        weight: [P, K, TILE_COLUMNS], contiguous, of the same type.
        panel: Which P.
        bias: [N], contiguous.
        out: float32 [M, N], contiguous; columns `column` to `column + TILE_COLUMNS` exist.
        column: Of `bias` and `out`.
        then: PLAIN, RELU or ADD.
    """
    del typing_context, row, panel, column, then
    integers = types.intp
    return types.void(x, integers, weight, integers, bias, out, integers, integers), _generate_tile


def _generate_tile(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    row, column, then = arguments[1], arguments[6], arguments[7]
    sums = _sum_panel(context, builder, signature, arguments)
    bias = builder.gep(data_of(context, builder, signature.args[4], arguments[4]), [column])
    biases = _load_columns(builder, bias, FLOATS)
    values = [[builder.fadd(value, biases[n]) for n, value in enumerate(columns)] for columns in sums]
    _finish(builder, values, _place(context, builder, (signature.args[5], arguments[5]), row, column), then)
    return context.get_dummy_value()


@intrinsic  # type: ignore[untyped-decorator]
def multiply_tile_int8(
    typing_context: Any, x: Any, row: Any, weight: Any, panel: Any, bias: Any, out: Any, column: Any, then: Any,
    row_scale: Any, scale: Any, offset: Any,
) -> Any:  # fmt: skip
    """Do the same with words of four 8-bit integers, in int32; those of `x` unsigned, those of `weight` signed.

    A sum of products is (sum - offset) * row_scale * scale.

    Args:
        typing_context: numba's.
        x: As for `multiply_tile`, like those that follow.
        row: Likewise, of `row_scale` too.
        weight: Likewise.
        panel: Likewise.
        bias: Likewise.
        out: Likewise.
        column: Likewise, of `scale` and `offset` too.
        then: Likewise.
        row_scale: float32 [M], contiguous.
        scale: float32 [N], contiguous.
        offset: int32 [N], contiguous.
    """
    del typing_context, row, panel, column, then
    integers = types.intp
    signature = (x, integers, weight, integers, bias, out, integers, integers, row_scale, scale, offset)
    return types.void(*signature), _generate_int8_tile


def _generate_int8_tile(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    row, column, then = arguments[1], arguments[6], arguments[7]
    sums = _sum_panel(context, builder, signature, arguments)
    places = {
        name: data_of(context, builder, signature.args[i], arguments[i])
        for name, i in (("bias", 4), ("row_scale", 8), ("scale", 9), ("offset", 10))
    }
    biases, scales = (_load_columns(builder, builder.gep(places[name], [column]), FLOATS) for name in ("bias", "scale"))
    whole = ir.VectorType(ir.IntType(32), LANES)
    offsets = _load_columns(builder, builder.gep(places["offset"], [column]), whole)
    multiply_and_add = multiply_add(builder, FLOATS)
    values = []
    for m, columns in enumerate(sums):
        place = builder.gep(places["row_scale"], [builder.add(row, integer(m))])
        row_scale = spread(builder, builder.load(place), FLOATS)
        exact = [builder.sitofp(builder.sub(value, offsets[n]), FLOATS) for n, value in enumerate(columns)]
        worth = [builder.fmul(row_scale, scale) for scale in scales]
        values.append([builder.call(multiply_and_add, [exact[n], worth[n], biases[n]]) for n in range(_VECTORS)])
    _finish(builder, values, _place(context, builder, (signature.args[5], arguments[5]), row, column), then)
    return context.get_dummy_value()


def _narrow_tile(vectors: int) -> Any:
    """Return what multiplies TILE_ROWS rows by `vectors` * LANES columns of a float32 matrix that is not packed.

    It is called with x [at least TILE_ROWS, at least K], weight [K, N] and out [at least TILE_ROWS, N], K > 0, whose
    rows are contiguous; whole vectors are read of every row of `weight` and written to every row of `out`.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def multiply(typing_context: Any, x: Any, weight: Any, out: Any) -> Any:
        del typing_context

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, weight, out = (
                context.make_array(kind)(context, builder, array)
                for kind, array in zip(signature.args, arguments, strict=True)
            )
            x_stride, weight_stride, out_stride = (_row_stride(builder, array) for array in (x, weight, out))
            rows = [builder.gep(x.data, [builder.mul(integer(m), x_stride)]) for m in range(TILE_ROWS)]
            columns = _Columns(weight.data, weight_stride, builder.extract_value(weight.shape, 0), vectors)
            _write(builder, _sum_over_depth(builder, types.float32, rows, columns), _Place(out.data, out_stride))
            return context.get_dummy_value()

        return types.void(x, weight, out), generate

    return multiply


multiply_1, multiply_2, multiply_3, multiply_4 = map(_narrow_tile, (1, 2, 3, 4))


class _Columns(NamedTuple):
    """Columns of weights.

    Attributes:
        first: Where the first row begins.
        stride: Words from row to row.
        depth: Rows.
        vectors: Of a row.
        ahead: So many words further on are those that are wanted next; None when nobody knows.
    """

    first: Any
    stride: Any
    depth: Any
    vectors: int
    ahead: Any = None


class _Place(NamedTuple):
    """Where a tile is written: its first number, floats from row to row."""

    first: Any
    stride: Any


def _row_stride(builder: Any, array: Any) -> Any:
    """Return how many floats lie between two rows."""
    return builder.sdiv(builder.extract_value(array.strides, 0), integer(4))


def _place(context: Any, builder: Any, out: tuple[Any, Any], row: Any, column: Any) -> _Place:
    array = context.make_array(out[0])(context, builder, out[1])
    stride = builder.extract_value(array.shape, 1)
    return _Place(builder.gep(array.data, [builder.add(builder.mul(row, stride), column)]), stride)


def _load_columns(builder: Any, pointer: Any, vector: Any) -> list[Any]:
    return [load(builder, builder.gep(pointer, [integer(n * LANES)]), vector) for n in range(_VECTORS)]


def _finish(builder: Any, values: list[list[Any]], place: _Place, then: Any) -> None:
    """Emit what follows a product, and write it."""
    with builder.if_else(builder.icmp_signed("==", then, integer(ADD))) as (is_added, is_set):
        with is_added:
            _write(builder, values, place, is_added=True)
        with is_set:
            is_relu = builder.icmp_signed("==", then, integer(RELU))
            floor = builder.select(is_relu, ir.FloatType()(0.0), ir.FloatType()(float("-inf")))
            least = spread(builder, floor, FLOATS)
            _write(builder, [[_at_least(builder, value, least) for value in columns] for columns in values], place)


def _at_least(builder: Any, value: Any, least: Any) -> Any:
    """Return the larger of two vectors' numbers; NaN stays."""
    return builder.select(builder.fcmp_ordered("<", value, least), least, value)


def _write(builder: Any, values: list[list[Any]], place: _Place, *, is_added: bool = False) -> None:
    for m, columns in enumerate(values):
        row = builder.gep(place.first, [builder.mul(integer(m), place.stride)])
        for n, value in enumerate(columns):
            pointer = builder.gep(row, [integer(n * LANES)])
            new = builder.fadd(value, load(builder, pointer, FLOATS)) if is_added else value
            store(builder, new, pointer)


def _sum_panel(context: Any, builder: Any, signature: Any, arguments: Any) -> list[list[Any]]:
    """Emit the product of the rows and the panel that both kinds of tile begin their arguments with."""
    x, weight = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2))
    row, panel = arguments[1], arguments[3]
    stride, depth = builder.extract_value(x.shape, 1), builder.extract_value(weight.shape, 1)
    rows = [builder.gep(x.data, [builder.mul(builder.add(row, integer(m)), stride)]) for m in range(TILE_ROWS)]
    size = builder.mul(depth, integer(TILE_COLUMNS))
    first_weight = builder.gep(weight.data, [builder.mul(panel, size)])
    columns = _Columns(first_weight, integer(TILE_COLUMNS), depth, _VECTORS, ahead=size)
    return _sum_over_depth(builder, signature.args[2].dtype, rows, columns)


def _sum_over_depth(builder: Any, kind: Any, rows: list[Any], columns: _Columns) -> list[list[Any]]:
    """Emit the loop over K, -> the sums, vectors [TILE_ROWS][vectors]."""
    words = ir.VectorType(rows[0].type.pointee, LANES)
    result = ir.VectorType(ir.IntType(32), LANES) if kind == types.int32 else FLOATS
    accumulate = _accumulator(builder, kind, result, words)
    before, loop = builder.block, builder.append_basic_block("over_depth")
    after = builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(ir.IntType(64))
    k.add_incoming(integer(0), before)
    sums = [[builder.phi(result) for _ in range(columns.vectors)] for _ in range(TILE_ROWS)]
    here = builder.gep(columns.first, [builder.mul(k, columns.stride)])
    weights = [load(builder, builder.gep(here, [integer(n * LANES)]), words) for n in range(columns.vectors)]
    if columns.ahead is not None:
        for n in range(columns.vectors):
            prefetch(builder, builder.gep(here, [builder.add(columns.ahead, integer(n * LANES))]))
    next_k = builder.add(k, integer(1))
    new = []
    for row, row_sums in zip(rows, sums, strict=True):
        value = spread(builder, builder.load(builder.gep(row, [k])), words)
        new.append([accumulate(row_sums[n], value, weights[n]) for n in range(columns.vectors)])
    for old_row, new_row in zip(sums, new, strict=True):
        for old, value in zip(old_row, new_row, strict=True):
            old.add_incoming(ir.Constant(result, [0] * LANES), before)
            old.add_incoming(value, loop)
    k.add_incoming(next_k, loop)
    builder.cbranch(builder.icmp_signed("<", next_k, columns.depth), loop, after)
    builder.position_at_end(after)
    return new


def _accumulator(builder: Any, kind: Any, result: Any, words: Any) -> Callable[[Any, Any, Any], Any]:
    """Return what emits sum + x * weight for vectors of words."""
    if kind == types.float32:
        function = multiply_add(builder, result)
        return lambda total, x, weight: builder.call(function, [x, weight, total])
    name = "avx512.vpdpbusd.512" if kind == types.int32 else "avx512bf16.dpbf16ps.512"
    signature = ir.FunctionType(result, [result, words, words])
    instruction = cgutils.get_or_insert_function(builder.module, signature, f"llvm.x86.{name}")
    return lambda total, x, weight: builder.call(instruction, [total, x, weight])
