#!/usr/bin/env bash
# Inside the image: fetch and convert what is missing, then serve.
set -euo pipefail
python model_loader.py prepare
exec python -m gunicorn "app:create_app()"
