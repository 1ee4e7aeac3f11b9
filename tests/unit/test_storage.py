"""The one door to bytes: the same promises for a folder and for S3 (a server on loopback)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.warehouse.storage import Store
from pipelines.warehouse.stores import open_store

ROOT = Path(__file__).resolve().parents[2]


def bucket(endpoint: str, name: str = "example-bucket") -> None:
    import boto3

    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=name)


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return open_store(str(tmp_path / "root"))
    endpoint = request.getfixturevalue("s3_endpoint")
    bucket(endpoint)
    return open_store("s3://example-bucket/some/prefix", endpoint_url=endpoint)


def test_what_is_written_is_read_back(store: Store, tmp_path: Path) -> None:
    store.write("a/one.json", b"1")
    store.write("a/one.json", b"22")
    assert store.read("a/one.json") == b"22"
    with store.open("a/one.json") as stream:
        assert (stream.read(1), stream.read()) == (b"2", b"2")
    store.download("a/one.json", tmp_path / "new" / "copy")
    store.upload(tmp_path / "new" / "copy", "b/two.json")
    assert store.read("b/two.json") == b"22"
    assert store.exists("b/two.json") and not store.exists("b")
    store.delete("b/two.json")
    store.delete("b/two.json")
    assert not store.exists("b/two.json")
    assert store.uri("a/one.json") == f"{store.location}/a/one.json"


def test_of_writers_that_update_one_object_none_is_lost(store: Store) -> None:
    def add(letter: str) -> None:
        for _ in range(10):
            store.update("log", lambda data: (data or b"") + letter.encode())

    writers = [threading.Thread(target=add, args=(letter,)) for letter in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert Counter(store.read("log").decode()) == {"a": 10, "b": 10, "c": 10}


def test_a_listing_is_sorted_deep_and_by_prefix(store: Store) -> None:
    for key in ("b/z", "b/a/1", "a", "bc", "b/a.tmp"):
        store.write(key, b"x")
    assert [item.key for item in store.list()] == ["a", "b/a.tmp", "b/a/1", "b/z", "bc"]
    assert [item.key for item in store.list("b")] == ["b/a.tmp", "b/a/1", "b/z", "bc"]
    assert [item.key for item in store.list("b/")] == ["b/a.tmp", "b/a/1", "b/z"]
    assert [item.key for item in store.list("b/a")] == ["b/a.tmp", "b/a/1"]
    assert store.list("none/") == []


def test_an_object_has_its_size_time_and_change(store: Store) -> None:
    store.write("a", b"one")
    (before,) = store.list()
    assert before.size == 3
    assert abs(before.modified_at - datetime.now(UTC)) < timedelta(minutes=1)
    store.write("a", b"two")
    assert store.list()[0].etag != before.etag


def test_every_page_of_a_listing_counts(s3_endpoint: str) -> None:
    from moto.backends import get_backend

    bucket(s3_endpoint)
    backend = get_backend("s3")["123456789012"]["aws"]
    # S3 answers with 1,000 keys a page.
    for number in range(2_001):
        backend.put_object("example-bucket", f"p/{number:05}", b"")
    backend.put_object("example-bucket", "p/folder/", b"")
    keys = [item.key for item in open_store("s3://example-bucket/p", endpoint_url=s3_endpoint).list()]
    assert keys == [f"{number:05}" for number in range(2_001)]


@pytest.mark.parametrize("key", ["", "../x", "/etc/hostname", "a/../../x", "..", "a/.."])
def test_a_key_may_not_leave_the_root(store: Store, tmp_path: Path, key: str) -> None:
    store.write("here", b"")
    (tmp_path / "x").write_bytes(b"secret")
    for attempt in (
        lambda: store.read(key),
        lambda: store.open(key).__enter__(),
        lambda: store.write(key, b""),
        lambda: store.write_new(key, b""),
        lambda: store.download(key, tmp_path / "copy"),
        lambda: store.upload(tmp_path / "x", key),
        lambda: store.delete(key),
        lambda: store.exists(key),
    ):
        with pytest.raises(SourceError, match="outside"):
            attempt()
    assert (tmp_path / "x").read_bytes() == b"secret"
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("prefix", ["../", "/etc/", "a/../../"])
def test_a_listing_may_not_leave_the_root(store: Store, prefix: str) -> None:
    store.write("here", b"")
    with pytest.raises(SourceError, match="outside"):
        store.list(prefix)


def test_links_count_only_inside_the_root(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "file").write_bytes(b"in")
    (root / "inside").symlink_to(root / "real" / "file")
    (root / "dangling").symlink_to(root / "gone")
    store = open_store(str(root))
    assert store.read("inside") == b"in"
    assert [item.key for item in store.list()] == ["inside", "real/file"]
    (root / "link").symlink_to(outside)
    with pytest.raises(SourceError, match="outside"):
        store.read("link/secret")
    with pytest.raises(SourceError, match="outside"):
        store.write("link/new", b"")
    # A folder left out unsaid would look like data that was never delivered.
    with pytest.raises(SourceError, match=r"root/link .*outside"):
        store.list()


def test_a_reader_sees_the_old_bytes_or_the_new(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "root"))
    whole = {bytes([letter]) * 300_000 for letter in b"ab"}
    store.write("x", next(iter(whole)))
    done = threading.Event()

    def write() -> None:
        for _ in range(100):
            for data in whole:
                store.write("x", data)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    reads = 0
    while not done.is_set():
        assert store.read("x") in whole
        assert [item.key for item in store.list()] == ["x"]
        reads += 1
    writer.join()
    assert reads > 10


def test_a_killed_writer_leaves_a_whole_object(tmp_path: Path) -> None:
    root = tmp_path / "root"
    script = (
        f"from pipelines.warehouse.stores import open_store\nstore = open_store({str(root)!r})\n"
        "while True:\n    for letter in b'ab':\n        store.write('x', bytes([letter]) * 3_000_000)\n"
        "        print('.', flush=True)\n"
    )
    for beats in range(2, 7):
        writer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(beats):
            writer.stdout.readline()
        writer.kill()
        writer.communicate()
        store = open_store(str(root))
        assert store.read("x") in {bytes([letter]) * 3_000_000 for letter in b"ab"}
        assert [item.key for item in store.list()] == ["x"]


def test_put_if_absent_has_one_winner_between_processes(tmp_path: Path) -> None:
    root = tmp_path / "root"
    script = (
        "import sys\nfrom pipelines.warehouse.stores import open_store\n"
        f"store = open_store({str(root)!r})\nname = sys.argv[1]\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "print(*[n for n in range(300) if store.write_new(f'n/{n}', name.encode() * 10_000)])\n"
    )
    pipe = subprocess.PIPE
    runners = {
        name: subprocess.Popen([sys.executable, "-c", script, name], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        for name in "abc"
    }
    for runner in runners.values():
        assert runner.stdout is not None
        runner.stdout.readline()
    for runner in runners.values():
        assert runner.stdin is not None
        runner.stdin.write("\n")
        runner.stdin.flush()
    won = {name: {int(n) for n in runner.communicate()[0].split()} for name, runner in runners.items()}
    # Each of the 300 names was won once, and holds its winner's bytes, whole.
    assert sorted(n for numbers in won.values() for n in numbers) == list(range(300))
    store = open_store(str(root))
    for name, numbers in won.items():
        assert all(store.read(f"n/{n}") == name.encode() * 10_000 for n in numbers)
    assert len(store.list()) == 300


def test_put_if_absent_keeps_the_first(store: Store) -> None:
    assert store.write_new("n/1", b"first") is True
    assert store.write_new("n/1", b"second") is False
    assert store.read("n/1") == b"first"


def test_a_missing_object_is_named(store: Store, tmp_path: Path) -> None:
    store.write("here", b"")
    for attempt in (
        lambda: store.read("gone/file.csv"),
        lambda: store.open("gone/file.csv").__enter__(),
        lambda: store.download("gone/file.csv", tmp_path / "copy"),
    ):
        with pytest.raises(SourceError, match=r"gone/file\.csv"):
            attempt()
    assert list(tmp_path.glob("*copy*")) == []


def test_a_missing_root_is_named(tmp_path: Path, s3_endpoint: str) -> None:
    with pytest.raises(SourceError, match="nowhere"):
        open_store(str(tmp_path / "nowhere")).list()
    with pytest.raises(SourceError, match=r"no-such-bucket.*location"):
        open_store("s3://no-such-bucket/x", endpoint_url=s3_endpoint).list()


def test_what_the_disk_refuses_is_reported_in_words(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"")
    store = open_store(str(tmp_path / "root"))
    for attempt in (
        lambda: store.write("file/below", b""),
        lambda: store.write_new("file/below", b""),
        lambda: store.upload(tmp_path / "root" / "file", "file/below"),
        lambda: store.read("file/below"),
    ):
        with pytest.raises(SourceError, match="file/below"):
            attempt()


@pytest.mark.parametrize("location", ["gs://bucket/x", "https://example.com/x", "s3://"])
def test_a_location_that_is_neither_folder_nor_bucket_is_refused(location: str) -> None:
    with pytest.raises(UsageError, match=r"s3://bucket/prefix"):
        open_store(location)


def test_missing_credentials_are_reported(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SourceError, match=r"s3://example-bucket.*credentials"):
        open_store("s3://example-bucket/x", endpoint_url=s3_endpoint).list()


def test_an_unknown_profile_is_reported(s3_endpoint: str) -> None:
    with pytest.raises((SourceError, UsageError), match=r"absent.*profile"):
        open_store("s3://example-bucket/x", endpoint_url=s3_endpoint, profile="absent").list()


def test_a_store_that_does_not_answer_may_be_tried_later(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    with pytest.raises(UnreachableError, match=r"s3://example-bucket.*endpoint_url"):
        open_store("s3://example-bucket/x", endpoint_url="http://127.0.0.1:9").list()


def answering(store: Store, monkeypatch: pytest.MonkeyPatch, code: str, status: int) -> None:
    """Have S3 answer every request with an error, as botocore reports it."""
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    def refuse(self: object, operation: str, arguments: dict) -> None:
        metadata = {"HTTPStatusCode": status, "RetryAttempts": 0}
        raise ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": metadata}, operation)  # type: ignore[typeddict-item]

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("AccessDenied", 403, "s3:ListBucket"),
        ("403", 403, "s3:ListBucket"),
        ("InvalidAccessKeyId", 403, "credentials"),
        ("SignatureDoesNotMatch", 403, "credentials"),
        ("ExpiredToken", 400, "credentials"),
        ("PermanentRedirect", 301, "region"),
        ("RequestTimeTooSkewed", 403, "clock"),
    ],
)
def test_a_refusal_names_place_and_fix_and_is_not_tried_again(
    s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, code: str, status: int, words: str
) -> None:
    store = open_store("s3://example-bucket/x", endpoint_url=s3_endpoint)
    answering(store, monkeypatch, code, status)
    with pytest.raises(SourceError, match=f"s3://example-bucket/x.*{words}") as raised:
        store.list()
    assert not isinstance(raised.value, UnreachableError)


def test_a_denied_write_names_its_own_permission(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("s3://example-bucket/x", endpoint_url=s3_endpoint)
    answering(store, monkeypatch, "AccessDenied", 403)
    with pytest.raises(SourceError, match=r"s3://example-bucket/x/a: access is denied; grant s3:PutObject on "):
        store.write("a", b"")
    with pytest.raises(SourceError, match=r"s3://example-bucket/x/a: access is denied; grant s3:DeleteObject on "):
        store.delete("a")


def test_an_overloaded_store_may_be_tried_later(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("s3://example-bucket/x", endpoint_url=s3_endpoint)
    answering(store, monkeypatch, "SlowDown", 503)
    with pytest.raises(UnreachableError, match="SlowDown"):
        store.list()


def test_a_write_that_was_sent_twice_still_wins(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    bucket(s3_endpoint)
    store = open_store("s3://example-bucket/x", endpoint_url=s3_endpoint)
    plain = BaseClient._make_api_call

    def answer_lost(self: BaseClient, operation: str, arguments: dict) -> object:
        """The first attempt is stored but its answer lost; botocore sends again and gets 412."""
        if operation == "PutObject":
            plain(self, operation, arguments)
            metadata = {"HTTPStatusCode": 412, "RetryAttempts": 1}
            raise ClientError({"Error": {"Code": "PreconditionFailed"}, "ResponseMetadata": metadata}, operation)  # type: ignore[typeddict-item]
        return plain(self, operation, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", answer_lost)
    assert store.write_new("publications/000001.json", b"ours") is True
