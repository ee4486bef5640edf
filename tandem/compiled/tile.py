"""The innermost loop of a matrix product: a tile of the result that stays in registers while its sums are formed.

numba compiles loops well, but does not keep an array of sums in registers; so this one loop is written as LLVM's vector
instructions. LLVM makes of them what the processor has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_FEATURES = binding.get_host_cpu_features()
# Floats in a vector register, and registers across a tile: 4 x 4 of 32 registers, or 4 x 2 of 16.
LANES = 16 if _FEATURES.get("avx512f") else 8 if _FEATURES.get("avx2") else 4
_VECTORS = 4 if LANES != 8 else 2
TILE_ROWS = 4
TILE_COLUMNS = LANES * _VECTORS


# Whether the processor multiplies pairs of bfloat16, or quadruples of 8-bit integers, in one instruction.
HAS_BFLOAT16 = LANES == 16 and bool(_FEATURES.get("avx512bf16"))
HAS_INT8 = LANES == 16 and bool(_FEATURES.get("avx512vnni"))


@intrinsic  # type: ignore[untyped-decorator]
def multiply_tile(typing_context: Any, x: Any, row: Any, weight: Any, panel: Any, out: Any) -> Any:
    """Multiply TILE_ROWS rows of `x` by a panel of packed weights.

    Inputs and weights are words of 32 bits: a float32, two bfloat16 (in uint32), or four 8-bit integers (in int32;
    those of `x` unsigned, those of `weight` signed). A word of `x` meets the word of `weight` for the same inputs.

    Args:
        typing_context: numba's.
        x: [M, at least K], contiguous; rows `row` to `row + TILE_ROWS` exist.
        row: The first of the rows.
        weight: [P, K, TILE_COLUMNS], contiguous, of the same type.
        panel: Which P.
        out: float32, or int32 for integers, [TILE_ROWS, TILE_COLUMNS], contiguous; overwritten.
    """
    del typing_context, row, panel
    return types.void(x, types.intp, weight, types.intp, out), _generate


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    x, weight = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2))
    row, panel, out = arguments[1], arguments[3], _data(context, builder, signature.args[4], arguments[4])
    stride, depth = builder.extract_value(x.shape, 1), builder.extract_value(weight.shape, 1)
    rows = [builder.gep(x.data, [builder.mul(builder.add(row, _integer(m)), stride)]) for m in range(TILE_ROWS)]
    first_weight = builder.gep(weight.data, [builder.mul(builder.mul(panel, depth), _integer(TILE_COLUMNS))])
    sums = _sum_over_depth(builder, signature.args[2].dtype, rows, first_weight, depth)
    for m, columns in enumerate(sums):
        for n, value in enumerate(columns):
            _store(builder, value, builder.gep(out, [_integer(m * TILE_COLUMNS + n * LANES)]))
    return context.get_dummy_value()


def _sum_over_depth(builder: Any, kind: Any, rows: list[Any], weight: Any, depth: Any) -> list[list[Any]]:
    """Emit the loop over K, -> the sums, vectors [TILE_ROWS][_VECTORS]."""
    words = ir.VectorType(rows[0].type.pointee, LANES)
    result = ir.VectorType(ir.IntType(32) if kind == types.int32 else ir.FloatType(), LANES)
    accumulate = _accumulator(builder, kind, result, words)
    before, loop = builder.block, builder.append_basic_block("over_depth")
    after = builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(ir.IntType(64))
    k.add_incoming(_integer(0), before)
    sums = [[builder.phi(result) for _ in range(_VECTORS)] for _ in range(TILE_ROWS)]
    columns = builder.gep(weight, [builder.mul(k, _integer(TILE_COLUMNS))])
    weights = [_load(builder, builder.gep(columns, [_integer(n * LANES)]), words) for n in range(_VECTORS)]
    next_k = builder.add(k, _integer(1))
    new = []
    for row, row_sums in zip(rows, sums, strict=True):
        value = _spread(builder, builder.load(builder.gep(row, [k])), words)
        new.append([accumulate(row_sums[n], value, weights[n]) for n in range(_VECTORS)])
    for old_row, new_row in zip(sums, new, strict=True):
        for old, value in zip(old_row, new_row, strict=True):
            old.add_incoming(ir.Constant(result, [0] * LANES), before)
            old.add_incoming(value, loop)
    k.add_incoming(next_k, loop)
    builder.cbranch(builder.icmp_signed("<", next_k, depth), loop, after)
    builder.position_at_end(after)
    return new


def _accumulator(builder: Any, kind: Any, result: Any, words: Any) -> Callable[[Any, Any, Any], Any]:
    """Return what emits sum + x * weight for vectors of words."""
    if kind == types.float32:
        multiply_add = _multiply_add(builder, result)
        return lambda total, x, weight: builder.call(multiply_add, [x, weight, total])
    name = "avx512.vpdpbusd.512" if kind == types.int32 else "avx512bf16.dpbf16ps.512"
    signature = ir.FunctionType(result, [result, words, words])
    instruction = cgutils.get_or_insert_function(builder.module, signature, f"llvm.x86.{name}")
    return lambda total, x, weight: builder.call(instruction, [total, x, weight])


def _multiply_add(builder: Any, vector: Any) -> Any:
    kind = ir.FunctionType(vector, [vector] * 3)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{vector.count}f32")


def _integer(value: int) -> Any:
    return ir.IntType(64)(value)


def _spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """Fill a vector with one float."""
    undefined = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _load(builder: Any, pointer: Any, vector: Any) -> Any:
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=4)


def _store(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=4)


@intrinsic  # type: ignore[untyped-decorator]
def dot_vectors(typing_context: Any, a: Any, b: Any, vectors: Any) -> Any:
    """Return the inner product of the first `vectors` * LANES entries of two contiguous float32 arrays."""
    del typing_context, vectors
    return types.float32(a, b, types.intp), _generate_dot


def _generate_dot(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    vector = ir.VectorType(ir.FloatType(), LANES)
    a, b = (_data(context, builder, signature.args[i], arguments[i]) for i in range(2))
    total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES))
    with cgutils.for_range(builder, arguments[2]) as loop:
        place = builder.mul(loop.index, _integer(LANES))
        x, y = (_load(builder, builder.gep(data, [place]), vector) for data in (a, b))
        builder.store(builder.call(_multiply_add(builder, vector), [x, y, builder.load(total)]), total)
    kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), vector])
    reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
    zero = ir.Constant(ir.FloatType(), 0.0)
    return builder.call(reduce, [zero, builder.load(total)], fastmath=("reassoc",))


@intrinsic  # type: ignore[untyped-decorator]
def add_scaled_vectors(typing_context: Any, target: Any, scale: Any, row: Any, vectors: Any) -> Any:
    """Target += scale * row, for the first `vectors` * LANES entries of two contiguous float32 arrays."""
    del typing_context, scale, vectors
    return types.void(target, types.float32, row, types.intp), _generate_add


def _generate_add(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    vector = ir.VectorType(ir.FloatType(), LANES)
    target, row = (_data(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
    scale = _spread(builder, arguments[1], vector)
    with cgutils.for_range(builder, arguments[3]) as loop:
        place = builder.mul(loop.index, _integer(LANES))
        pointer = builder.gep(target, [place])
        x, y = _load(builder, builder.gep(row, [place]), vector), _load(builder, pointer, vector)
        _store(builder, builder.call(_multiply_add(builder, vector), [scale, x, y]), pointer)
    return context.get_dummy_value()


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


@intrinsic  # type: ignore[untyped-decorator]
def float_of_bits(typing_context: Any, bits: Any) -> Any:
    """Take an int32's bits for those of a float32."""
    del typing_context, bits

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic  # type: ignore[untyped-decorator]
def bits_of_float(typing_context: Any, value: Any) -> Any:
    """Take a float32's bits for those of a uint32."""
    del typing_context, value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), generate
