"""For whoever runs the service: /health, /ready, /metrics."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from tandem.web.runtime import Runtime


def build_ops(runtime: Runtime) -> Blueprint:
    """Return the blueprint of the operator's routes; none of them touches a queue."""
    ops = Blueprint("ops", __name__)

    @ops.get("/health")
    def get_health() -> Response:
        """Say that the process lives, and how it fares."""
        services = runtime.loaded
        if services is None:
            return jsonify({"status": "ok", "device": None, "gpu_mem_used_gb": None, "models": {}, "queue": {}})
        return jsonify(
            {
                "status": "ok",
                "device": services.device,
                "gpu_mem_used_gb": services.memory(),
                "models": services.models,
                "queue": services.queues(),
            }
        )

    @ops.get("/ready")
    def get_ready() -> Response:
        """Say whether requests are welcome: 200, or 503 with the reason."""
        reason = runtime.why_not_ready()
        response = jsonify({"ready": reason is None, "reason": reason})
        if reason is not None:
            response.status_code = 503
            response.headers["Retry-After"] = "2"
        return response

    @ops.get("/metrics")
    def get_metrics() -> Response:
        """Give all metrics in Prometheus' text format."""
        return Response(runtime.metrics.render(), mimetype="text/plain; version=0.0.4")

    return ops
