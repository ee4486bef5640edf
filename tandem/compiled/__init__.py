"""Kernels for a CPU that numba compiles when they are first used and keeps; nobody needs a compiler.

torch's operations cost 3 to 15 microseconds each before they compute anything, which is most of the time of a small
model's decode step. Here a whole step is one call, without the interpreter's lock, on as many rows as its thread got.

Nothing but `tandem.compiled.availability` may be imported before that says the kernels can be used.
"""
