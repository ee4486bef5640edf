"""What a request means: caches, schedulers and text work put together. No Flask, no torch, no Redis."""
