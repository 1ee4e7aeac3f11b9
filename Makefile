# Thin calls; each sets up what it needs. PYTHON must be 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LINES ?= 2000000
# Every install is held to the versions in requirements.lock, and each file to its hashes there; the build of the wheel
# too. Byte code is written then, so that no command pays for it,
# also where PYTHONDONTWRITEBYTECODE keeps Python from writing it later.
INSTALL := $(BIN)/uv pip install --quiet --compile-bytecode -c requirements.lock -b requirements.lock --python
COMPILE := $(BIN)/python -m compileall -q pipelines

.PHONY: demo dashboard docs pictures test test-slow test-first-hour test-spark test-wheel test-image release advisories check bench lock clean
CHROMIUM := chromium --headless --no-sandbox --hide-scrollbars --virtual-time-budget=5000

demo: $(VENV)/.base
	@$(BIN)/trainledger demo

# The current publication of trainledger.toml here, else of the demo, which is built first where there is none.
dashboard: $(VENV)/.ui
	@test -f trainledger.toml -o -n "$$TRAINLEDGER_CONFIG" -o -f trainledger-demo/trainledger.toml || $(BIN)/trainledger demo
	$(BIN)/trainledger dashboard $(if $(PORT),--port $(PORT))

# The site, in site/; a dead link fails it.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

# The pictures of the docs, from a demo built anew. Needs Chromium.
pictures: $(VENV)/.base
	$(BIN)/trainledger demo
	cd trainledger-demo && ../$(BIN)/trainledger report --kind commitments --out commitments.html
	cd trainledger-demo && ../$(BIN)/trainledger dashboard --export pages --run-pages 0
	$(CHROMIUM) --window-size=1280,1330 --screenshot=docs/report.png file://$(CURDIR)/trainledger-demo/report.html
	$(CHROMIUM) --window-size=1280,1600 --screenshot=docs/commitments.png file://$(CURDIR)/trainledger-demo/commitments.html
	$(CHROMIUM) --window-size=1280,960 --screenshot=docs/dashboard.png file://$(CURDIR)/trainledger-demo/pages/index.html

# One worker more than processors: some tests wait for a server or for the next minute of a schedule. The files start
# in the order of tests/conftest.py; byte code is written, which saves every worker and service compiling them again.
test: $(VENV)/.dev .mlflow/.server
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder

# The laws over random ledgers, builds killed and damaged anywhere, and the first hour of a new user.
test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow

# A new user's first hour: clone, install, demo, a real bill. It prints the time of each step.
test-first-hour: $(VENV)/.dev
	MAKEFLAGS= $(BIN)/python -m pytest -s -m slow tests/test_first_hour.py

test-spark: $(VENV)/.spark
	$(BIN)/python -m pytest -m spark $(TESTS)

# The wheel alone, in an empty environment and an empty folder, passes the demo too.
test-wheel: $(BIN)/uv
	rm -rf dist .wheel-test
	$(BIN)/uv build --quiet --wheel --out-dir dist --build-constraints requirements.lock
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .wheel-test/venv
	$(INSTALL) .wheel-test/venv/bin/python dist/*.whl
	mkdir .wheel-test/empty && cd .wheel-test/empty && ../venv/bin/trainledger demo

# The container image is built and run; BASE=… names an image with Python where a registry is reached. Needs buildah.
test-image: $(VENV)/.dev
	$(BIN)/python -m pytest -s -m slow tests/test_image.py

# Next to the wheel of a release: the libraries it runs with (CycloneDX), as installed by `test-wheel`, and the digests.
release: test-wheel $(VENV)/.release
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		-o dist/trainledger.cdx.json .wheel-test/venv/bin/python
	cd dist && sha256sum * > SHA256SUMS

# Known advisories about any locked library, from PyPI; it fails where one cannot be looked up.
advisories: $(VENV)/.release
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

# Types of the Spark engine need the Spark extra.
check: $(VENV)/.spark
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python tests/architecture/words.py
	$(BIN)/pyright

# docs/benchmarks.md is written by hand from what it prints.
bench: $(VENV)/.dev $(if $(SPARK),$(VENV)/.spark)
	$(BIN)/python -m pipelines.bench $(if $(FIXED),--fixed --keep docs/benchmarks-fixed.md,$(if $(RUNS),--runs $(RUNS),$(if $(ACCOUNTS),--accounts $(ACCOUNTS) --keep docs/benchmarks-commitments.md,--lines $(LINES) $(if $(SPARK),--spark))))

$(BIN)/uv: requirements.lock
	@echo Installing into $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock
	@touch $@

$(VENV)/.base: $(BIN)/uv pyproject.toml
	@$(INSTALL) $(BIN)/python -e .
	@$(COMPILE)
	@touch $@

$(VENV)/.ui: $(VENV)/.base
	$(INSTALL) $(BIN)/python -e '.[ui]'
	@touch $@

$(VENV)/.dev: $(BIN)/uv pyproject.toml
	$(INSTALL) $(BIN)/python -e '.[dev]'
	$(COMPILE)
	@touch $@ $(VENV)/.base $(VENV)/.ui

# A tracking server for the tests to read from, in an environment of its own as users have it.
.mlflow/.server: $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .mlflow
	$(BIN)/uv pip install --quiet --python .mlflow/bin/python mlflow==3.17.2
	@touch $@

# Everything at once: an install after another looks through all byte code anew.
$(VENV)/.spark: $(BIN)/uv pyproject.toml
	$(INSTALL) $(BIN)/python -e '.[dev,spark]'
	$(COMPILE)
	@touch $@ $(VENV)/.base $(VENV)/.ui $(VENV)/.dev

$(VENV)/.release: $(VENV)/.dev
	$(INSTALL) $(BIN)/python -e '.[dev,release]'
	@touch $@

lock: $(BIN)/uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
		--no-emit-index-url --no-annotate --no-header --quiet --generate-hashes \
		-o requirements.lock

clean:
	rm -rf $(VENV) .mlflow dist site .wheel-test trainledger-demo
