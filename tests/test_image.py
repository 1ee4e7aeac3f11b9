"""The container image, built from deploy/Containerfile and run as its user: commands, dashboard, Dagster's services.

Needs buildah. BASE names the image that Python comes from; without it, one of about its size is made of Debian's
packages (needs mmdebstrap), so that package indexes are all that is reached. It takes minutes: `make test-image`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.ports import free_port

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
# Bytes on disk with the base, and compressed as a registry keeps them.
ON_DISK, COMPRESSED = 900_000_000, 360_000_000
DEMO = "/data/trainledger-demo"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PACKAGES = "python3-venv,python-is-python3,ca-certificates,netbase,tzdata,usr-is-merged"
# The public image has no manuals, no byte code, and no Perl, which mmdebstrap installs to merge /usr.
HOOKS = (
    'chroot "$1" apt-get purge --quiet --yes usrmerge "?and(?installed,?name(perl),?not(?essential))"',
    'find "$1/usr/lib" -name "*.pyc" -delete',
)
# Starts the command and prints the answer of its page.
SERVE = """
import subprocess, sys, time, urllib.request
url, body, *words = sys.argv[1:]
request = urllib.request.Request(url, body.encode() or None, {"Content-Type": "application/json"})
service = subprocess.Popen(words, stdout=sys.stderr)
try:
    for _ in range(600):
        try:
            print(urllib.request.urlopen(request, timeout=60).read().decode())
            break
        except OSError:
            time.sleep(0.5)
finally:
    service.terminate()
    service.wait()
"""
# Runs a command and prints which of the modules it imported have no byte code, or one of another source.
UNCOMPILED = """
import sys
from pathlib import Path
from pipelines.cli import main

def is_current(code, source):
    return code.exists() and int.from_bytes(code.read_bytes()[8:12], "little") == int(source.stat().st_mtime)

try:
    main()
finally:
    # A library that is byte code alone is its own cache.
    cached = [module for module in sys.modules.values() if getattr(module, "__cached__", None)]
    modules = [module for module in cached if module.__cached__ != module.__file__]
    stale = [module.__name__ for module in modules if not is_current(Path(module.__cached__), Path(module.__file__))]
    print("\\nuncompiled", *stale)
"""
# Loads every shared library of the packages and of Python.
LOAD = """
import ctypes, pathlib, sysconfig
for folder in ("/opt/trainledger", sysconfig.get_path("stdlib")):
    for library in pathlib.Path(folder).rglob("*.so*"):
        ctypes.CDLL(str(library))
"""
Run = Callable[..., str]


def buildah(*words: str | Path) -> str:
    done = subprocess.run(["buildah", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed")
    if named := os.environ.get("BASE"):
        return named
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap is not installed, and BASE names no image with Python")
    archive = tmp_path_factory.mktemp("base") / "base.tar"
    slim = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")]
    hooks = [f"--customize-hook={hook}" for hook in HOOKS]
    options = ["--quiet", "--variant=minbase", f"--include={PACKAGES}", *slim, *hooks]
    subprocess.run(["mmdebstrap", *options, "bookworm", archive], check=True, stdout=subprocess.DEVNULL)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, archive, "/")
    # A proxy before the package index may have a certificate of its own.
    buildah("config", *(f"--env={name}={CERTIFICATES}" for name in ("PIP_CERT", "SSL_CERT_FILE")), container)
    return buildah("commit", "--quiet", "--rm", container, "localhost/trainledger-base")


@pytest.fixture(scope="module")
def image(base: str) -> str:
    volumes = [f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"] if Path(CERTIFICATES).exists() else []
    options = ["--quiet", "--isolation=chroot", *volumes, f"--build-arg=PYTHON={base}", "--file=deploy/Containerfile"]
    buildah("build", *options, "--tag=localhost/trainledger-test", ".")
    return "localhost/trainledger-test"


@pytest.fixture(scope="module")
def run(image: str) -> Iterator[Run]:
    """Runs a command in one container of the image, as the image's user, and returns what it printed."""
    container = buildah("from", image)

    def words(*command: str, **environment: str) -> str:
        named = [f"--env={name}={value}" for name, value in environment.items()]
        return buildah("run", "--isolation=chroot", *named, container, "--", *command)

    yield words
    buildah("rm", container)


@pytest.fixture(scope="module")
def demo(run: Run) -> str:
    return run("trainledger", "demo")


def test_size_on_disk_and_compressed(image: str, run: Run, tmp_path: Path) -> None:
    on_disk = int(run("sh", "-c", "du -sxb / 2>/dev/null | cut -f 1"))
    buildah("push", "--quiet", image, f"oci-archive:{tmp_path / 'image.tar'}")
    compressed = (tmp_path / "image.tar").stat().st_size
    sys.stdout.write(f"\n{on_disk / 1e6:,.0f} MB on disk, {compressed / 1e6:,.0f} MB compressed\n")
    assert on_disk <= ON_DISK
    assert compressed <= COMPRESSED


def test_its_user_writes_data_and_no_code(run: Run) -> None:
    assert run("id", "-u") == "10001"
    assert run("find", "/opt", "/usr", "-writable", "-not", "-type", "l") == ""
    run("sh", "-c", "touch /data/one /dagster/one /home/trainledger/.cache/one")


def test_commands_over_the_demo(run: Run, demo: str) -> None:
    assert "$60,124.58" in demo
    reports = ("report --pdf report.pdf", "report --terminal", "dashboard --export pages", "export focus --out focus")
    for words in ("check", *reports):
        run("sh", "-c", f"cd {DEMO} && trainledger {words}")
    assert run("head", "-c", "5", f"{DEMO}/report.pdf") == "%PDF-"
    counted = run("sh", "-c", f"cd {DEMO} && trainledger query --csv 'select count(*) as run_count from mart_run_cost'")
    assert counted.split() == ["run_count", "33"]
    slack = {"TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL": "https://hooks.invalid/none"}
    assert run("sh", "-c", f"cd {DEMO} && trainledger notify --dry-run", **slack)


def test_commands_compile_nothing(run: Run, demo: str) -> None:
    for words in (["report", "--out", "report.html"], ["query", "select 1"], ["export", "focus", "--out", "again"]):
        printed = run("sh", "-c", f'cd {DEMO} && exec python -c "$0" "$@"', UNCOMPILED, *words)
        assert printed.splitlines()[-1] == "uncompiled"


def test_shared_libraries_load(run: Run) -> None:
    """Stripped of their symbols, which a few cannot bear, and Python's own without the packages that are left out."""
    run("python", "-c", LOAD)


def test_certificates_are_found(run: Run) -> None:
    """Mail and webhooks are sent by Python's own TLS."""
    run("python", "-c", "import ssl; assert ssl.create_default_context().get_ca_certs()")


def test_dashboard_answers(run: Run, demo: str) -> None:
    port = str(free_port())
    words = ("trainledger", "dashboard", "--config", f"{DEMO}/trainledger.toml", "--port", port)
    assert "<html" in run("python", "-c", SERVE, f"http://127.0.0.1:{port}/", "", *words)


def test_dagster_serves_every_asset(run: Run, demo: str) -> None:
    named = {"DAGSTER_HOME": "/data/dagster", "TRAINLEDGER_CONFIG": f"{DEMO}/trainledger.toml"}
    run("install", "-D", "-t", "/data/dagster", "/opt/trainledger/dagster.yaml")
    run("dagster", "instance", "migrate", **named)
    # As Dagster's chart starts its webserver.
    assert "version" in run("/bin/bash", "-c", "dagster-webserver --version")
    port = str(free_port())
    words = ("dagster-webserver", "-h", "127.0.0.1", "-p", port, "-m", "pipelines.definitions")
    query = json.dumps({"query": "{assetNodes {assetKey {path}}}"})
    answer = run("python", "-c", SERVE, f"http://127.0.0.1:{port}/graphql", query, *words, **named)
    nodes = json.loads(answer)["data"]["assetNodes"]
    keys = (ROOT / "tests" / "defs" / "asset_keys.txt").read_text().split()
    assert sorted("/".join(node["assetKey"]["path"]) for node in nodes) == sorted(keys)
    assert "QueuedRunCoordinatorDaemon" in run(
        "sh", "-c", "timeout 60 dagster-daemon run -m pipelines.definitions 2>&1 || true", **named
    )
