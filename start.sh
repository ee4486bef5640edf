#!/usr/bin/env bash
# Sets everything up in .venv and serves; the second start takes seconds. Settings: docs/settings.md.
#   ./start.sh          set up and serve
#   ./start.sh setup    set up only
# TORCH_INDEX_URL chooses another index for torch, e.g. https://download.pytorch.org/whl/cpu for a machine without a GPU.
set -euo pipefail
cd "$(dirname "$0")"

has_gpu() { command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; }

set_up() {
  local requirements=requirements.txt python=${PYTHON:-python3}
  if has_gpu; then requirements=requirements-gpu.txt; fi
  requirements=${REQUIREMENTS:-$requirements}
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "tandem: Python 3.11 or newer is needed; set PYTHON to one, e.g. PYTHON=python3.12 ./start.sh" >&2
    exit 1
  fi
  if [ ! -x .venv/bin/python ]; then
    "$python" -m venv .venv || {
      echo "tandem: the venv module is missing; on Debian and Ubuntu: apt install python3-venv" >&2
      exit 1
    }
  fi
  local stamp
  stamp=".venv/installed-$(cat requirements*.txt | cksum | cut -d' ' -f1)-$requirements"
  if [ ! -e "$stamp" ]; then
    echo "tandem: installing $requirements; this takes a minute or more, once" >&2
    if [ -n "${TORCH_INDEX_URL:-}" ]; then
      .venv/bin/python -m pip install --quiet --index-url "$TORCH_INDEX_URL" "$(grep '^torch==' requirements.txt)"
    fi
    .venv/bin/python -m pip install --quiet -r "$requirements"
    touch "$stamp"
  fi
}

serve() {
  if has_gpu; then
    export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0} # one process a GPU
    export PYTORCH_CUDA_ALLOC_CONF=${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}
  fi
  # The demo models need no download, and are converted in a second by the server itself.
  if [ "${TRANSLATION_MODEL:-demo}/${EMBEDDING_MODEL:-demo}" != demo/demo ]; then
    .venv/bin/python model_loader.py prepare
  fi
  echo "tandem: serving on http://${HOST:-127.0.0.1}:${PORT:-5000}" >&2
  exec .venv/bin/python -m gunicorn "app:create_app()"
}

set_up
case "${1:-serve}" in
  setup) ;;
  serve) serve ;;
  *)
    echo "usage: ./start.sh [setup]" >&2
    exit 2
    ;;
esac
