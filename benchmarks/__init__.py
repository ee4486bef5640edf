"""Side-by-side measurements against other engines, one file a question. Run `python -m benchmarks`."""
