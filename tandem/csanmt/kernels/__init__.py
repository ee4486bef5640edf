"""CSANMT on a CPU as kernels that numba compiles; see `tandem.compiled`. In float32, for any configuration."""
