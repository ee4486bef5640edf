# Every command stands here once; README, CI and pre-commit call these.
.PHONY: setup serve test check format load bench bench-peers bench-table gpu-check fuzz schemathesis settings

PYTHON := .venv/bin/python
ARGS ?=

setup: ## everything that tests and checks need, in .venv
	@REQUIREMENTS=requirements-dev.txt ./start.sh setup

serve: ## set up and serve
	./start.sh

test: setup ## all tests; ARGS="-k name" chooses
	$(PYTHON) -m pytest $(ARGS)

check: setup ## lint, format, types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

format: setup ## what can be mended by itself
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

load: setup ## throughput and latency of a server under load
	$(PYTHON) -m benchmarks.load $(ARGS)

bench-peers: setup ## the peers that `make bench` compares with, each in its own environment
	mkdir -p build/peers
	for peer in official peers infinity; do \
	  python3 -m venv build/peers/$$peer && \
	  build/peers/$$peer/bin/python -m pip install --quiet -r benchmarks/requirements-$$peer.txt || exit 1; \
	done

bench: setup ## our engines beside their peers; writes benchmarks/results/latest.json and draws docs/benchmarks
	$(PYTHON) -m benchmarks $(ARGS)

bench-table: setup ## the results as Markdown, for docs/benchmarks.md
	$(PYTHON) -m benchmarks.table $(ARGS)

gpu-check: setup ## on a CUDA machine: parity and figures in a few minutes
	$(PYTHON) -m benchmarks.gpu_check $(ARGS)

fuzz: setup ## the text property tests with 10,000 texts
	FUZZ_EXAMPLES=10000 $(PYTHON) -m pytest tests/text/test_fidelity_properties.py tests/text/test_html_properties.py $(ARGS)

schemathesis: setup ## 2,000 generated requests over all routes
	SCHEMATHESIS_REQUESTS=2000 $(PYTHON) -m pytest tests/web/test_openapi.py -k generated -s $(ARGS)

settings: setup ## write docs/settings.md from the settings themselves
	$(PYTHON) -m tandem.core.settings > docs/settings.md
