"""How gunicorn serves the application: one worker with gevent, one process for each GPU."""

import os

from tandem.core.settings import load_settings

# torch's threads must sleep while they wait for each other. Spinning, which is OpenMP's way by default, takes the cores
# from the thread that answers requests, and an engine whose threads are not all running stands still for whole time
# slices: docs/decisions/0003-threads-that-sleep.md has the figures. The worker inherits this before it imports torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_settings = load_settings()

bind = f"{_settings.host}:{_settings.port}"
worker_class = "gevent"
workers = 1  # a worker holds both models; more GPUs or hosts are more instances behind a balancer
worker_connections = 2000
timeout = 120  # a worker whose loop stands still for so long is killed
graceful_timeout = max(round(_settings.drain_timeout_s), 1)
keepalive = 75
accesslog = None  # the application writes its own, with request ids and without texts
loglevel = "warning"
