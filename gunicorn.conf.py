"""How gunicorn serves the application: one worker with gevent, one process for each GPU."""

from tandem.core import openmp
from tandem.core.settings import load_settings

# torch's threads must not spin for long while they wait for each other. It takes the cores from the thread that answers
# requests, and from engines whose threads are their own. The worker inherits this before it imports torch.
openmp.set_defaults()

_settings = load_settings()

bind = f"{_settings.host}:{_settings.port}"
worker_class = "tandem.web.worker.Worker"  # gevent
workers = 1  # a worker holds both models; more GPUs or hosts are more instances behind a balancer
worker_connections = 2000
timeout = 120  # a worker whose loop stands still for so long is killed
graceful_timeout = max(round(_settings.drain_timeout_s), 1)
keepalive = 75
accesslog = None  # the application writes its own, with request ids and without texts
loglevel = "warning"
