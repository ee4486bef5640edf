"""Vectors of float32 in LLVM's own instructions, for what numba's loops do not come to by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

FEATURES = binding.get_host_cpu_features()
LANES = 16 if FEATURES.get("avx512f") else 8 if FEATURES.get("avx2") else 4  # floats in a vector register
FLOATS = ir.VectorType(ir.FloatType(), LANES)


@intrinsic  # type: ignore[untyped-decorator]
def dot_vectors(typing_context: Any, a: Any, b: Any, vectors: Any) -> Any:
    """Return the inner product of the first `vectors` * LANES entries of two contiguous float32 arrays."""
    del typing_context, vectors
    return types.float32(a, b, types.intp), _generate_dot


def _generate_dot(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    a, b = (data_of(context, builder, signature.args[i], arguments[i]) for i in range(2))
    total = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [0.0] * LANES))
    with cgutils.for_range(builder, arguments[2]) as loop:
        place = builder.mul(loop.index, integer(LANES))
        x, y = (load(builder, builder.gep(data, [place]), FLOATS) for data in (a, b))
        builder.store(builder.call(multiply_add(builder, FLOATS), [x, y, builder.load(total)]), total)
    return _add_lanes(builder, builder.load(total))


@intrinsic  # type: ignore[untyped-decorator]
def add_scaled_vectors(typing_context: Any, target: Any, scale: Any, row: Any, vectors: Any) -> Any:
    """Target += scale * row, for the first `vectors` * LANES entries of two contiguous float32 arrays."""
    del typing_context, scale, vectors
    return types.void(target, types.float32, row, types.intp), _generate_add


def _generate_add(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    target, row = (data_of(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
    scale = spread(builder, arguments[1], FLOATS)
    with cgutils.for_range(builder, arguments[3]) as loop:
        place = builder.mul(loop.index, integer(LANES))
        pointer = builder.gep(target, [place])
        x, y = load(builder, builder.gep(row, [place]), FLOATS), load(builder, pointer, FLOATS)
        store(builder, builder.call(multiply_add(builder, FLOATS), [scale, x, y]), pointer)
    return context.get_dummy_value()


def _largest(*, of_magnitudes: bool) -> Any:
    """Return what gives the largest of the first `vectors` * LANES numbers of a contiguous float32 array.

    NaN is passed over; without any number it is -inf. numba's own loop would compare one number at a time.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def largest(typing_context: Any, values: Any, vectors: Any) -> Any:
        del typing_context, vectors

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = data_of(context, builder, signature.args[0], arguments[0])
            best = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [float("-inf")] * LANES))
            with cgutils.for_range(builder, arguments[1]) as loop:
                value = load(builder, builder.gep(data, [builder.mul(loop.index, integer(LANES))]), FLOATS)
                if of_magnitudes:
                    kind = ir.FunctionType(FLOATS, [FLOATS])
                    magnitude = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{LANES}f32")
                    value = builder.call(magnitude, [value])
                so_far = builder.load(best)
                builder.store(builder.select(builder.fcmp_ordered(">", value, so_far), value, so_far), best)
            kind = ir.FunctionType(ir.FloatType(), [FLOATS])
            reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fmax.v{LANES}f32")
            return builder.call(reduce, [builder.load(best)], fastmath=("nnan",))

        return types.float32(values, types.intp), generate

    return largest


largest_of_vectors, largest_magnitude_of_vectors = _largest(of_magnitudes=False), _largest(of_magnitudes=True)


@intrinsic  # type: ignore[untyped-decorator]
def scale_vectors(typing_context: Any, values: Any, factor: Any, vectors: Any) -> Any:
    """Multiply the first `vectors` * LANES entries of a contiguous float32 array by a number, in place."""
    del typing_context, factor, vectors
    return types.void(values, types.float32, types.intp), _generate_scale


def _generate_scale(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = data_of(context, builder, signature.args[0], arguments[0])
    factor = spread(builder, arguments[1], FLOATS)
    with cgutils.for_range(builder, arguments[2]) as loop:
        pointer = builder.gep(data, [builder.mul(loop.index, integer(LANES))])
        store(builder, builder.fmul(load(builder, pointer, FLOATS), factor), pointer)
    return context.get_dummy_value()


def _exponentials(*, are_kept: bool) -> Any:
    """Return what gives the sum of e^(x - top) over the first `vectors` * LANES entries x <= top of a float32 array.

    Each is right to 1e-7 of the largest it can be; NaN stays NaN. Where they are kept, they take the entries' places.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def exponentials(typing_context: Any, values: Any, top: Any, vectors: Any) -> Any:
        del typing_context, top, vectors

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = data_of(context, builder, signature.args[0], arguments[0])
            top = spread(builder, arguments[1], FLOATS)
            total = cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [0.0] * LANES))
            with cgutils.for_range(builder, arguments[2]) as loop:
                pointer = builder.gep(data, [builder.mul(loop.index, integer(LANES))])
                value = _exponential(builder, builder.fsub(load(builder, pointer, FLOATS), top))
                if are_kept:
                    store(builder, value, pointer)
                builder.store(builder.fadd(builder.load(total), value), total)
            return _add_lanes(builder, builder.load(total))

        return types.float32(values, types.float32, types.intp), generate

    return exponentials


sum_exponentials, take_exponentials = _exponentials(are_kept=False), _exponentials(are_kept=True)

_LOG2_E = 1.44269504
_SMALLEST = -127.0  # 2 to this power and below is 0
# 2^f for |f| <= 1/2, from the highest power of f: the interpolation at Chebyshev's points, off by 3e-9 at most.
_POWERS = (1.546144472e-4, 1.340042818e-3, 9.618056678e-3, 5.550327227e-2, 0.2402265092, 0.6931472067, 1.0)


def _exponential(builder: Any, x: Any) -> Any:
    """Emit e^x for a vector of x <= 0."""
    power = builder.fmul(x, _constant(_LOG2_E))
    power = builder.select(builder.fcmp_ordered("<", power, _constant(_SMALLEST)), _constant(_SMALLEST), power)
    kind = ir.FunctionType(FLOATS, [FLOATS])
    round_to_even = cgutils.get_or_insert_function(builder.module, kind, f"llvm.rint.v{LANES}f32")
    whole = builder.call(round_to_even, [power])
    fraction, function = builder.fsub(power, whole), multiply_add(builder, FLOATS)
    result = _constant(_POWERS[0])
    for factor in _POWERS[1:]:
        result = builder.call(function, [result, fraction, _constant(factor)])
    integers = ir.VectorType(ir.IntType(32), LANES)
    bias, mantissa = (ir.Constant(integers, [value] * LANES) for value in (127, 23))
    exponent = builder.shl(builder.add(builder.fptosi(whole, integers), bias), mantissa)
    return builder.fmul(result, builder.bitcast(exponent, FLOATS))


def _constant(value: float) -> Any:
    return ir.Constant(FLOATS, [float(np.float32(value))] * LANES)


def _add_lanes(builder: Any, vector: Any) -> Any:
    kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), vector.type])
    add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
    return builder.call(add, [ir.Constant(ir.FloatType(), 0.0), vector], fastmath=("reassoc",))


@intrinsic  # type: ignore[untyped-decorator]
def bits_of_float(typing_context: Any, value: Any) -> Any:
    """Take a float32's bits for those of a uint32."""
    del typing_context, value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), generate


def integer(value: int) -> Any:
    """Return a constant of 64 bits."""
    return ir.IntType(64)(value)


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return where an array's numbers lie."""
    return context.make_array(kind)(context, builder, array).data


def multiply_add(builder: Any, vector: Any) -> Any:
    """Return the function a * b + c of float vectors."""
    kind = ir.FunctionType(vector, [vector] * 3)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{vector.count}f32")


def spread(builder: Any, scalar: Any, vector: Any) -> Any:
    """Fill a vector with one number."""
    undefined = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def load(builder: Any, pointer: Any, vector: Any) -> Any:
    """Read a vector from any address."""
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=4)


def store(builder: Any, value: Any, pointer: Any) -> None:
    """Write a vector to any address."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=4)


def prefetch(builder: Any, pointer: Any) -> None:
    """Have an address fetched into the second-level cache; any address will do."""
    flag = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), flag, flag, flag])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.bitcast(pointer, ir.IntType(8).as_pointer()), flag(0), flag(2), flag(1)])
