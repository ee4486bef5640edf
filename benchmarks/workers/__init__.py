"""Programs that hold one engine each, ours or a peer's, and run what the parent sends them.

A peer's worker runs in the peer's own virtual environment: besides the peer it imports only `benchmarks.protocol`.
"""
