"""The index in a real Chroma: embedded, shared by processes, killed, broken, and on a server."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.retrieve.conftest import REPO, Start
from tests.retrieve.processes import DIMENSION, entry
from triage.errors import IndexBrokenError, IndexUnavailableError, UsageError
from triage.retrieve.chroma import ChromaIndex
from triage.retrieve.index import Entry, Index, MemoryIndex

WORKER = str(REPO / "tests" / "retrieve" / "processes.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture(params=["chroma", "memory"])
def index(request: pytest.FixtureRequest, folder: Path) -> Index:
    return ChromaIndex("test", DIMENSION, folder=folder) if request.param == "chroma" else MemoryIndex()


def found_exactly(index: Index, names: list[str]) -> list[str]:
    """The names whose own vector does not come back first."""
    return [name for name in names if [hit.id for hit in index.search(entry(name).vector, 1)] != [name]]


# ------------------------------------------------------------------------------------------------ one process
def test_an_index_that_was_never_written_is_empty_and_reading_makes_nothing(folder: Path) -> None:
    index = ChromaIndex("test", DIMENSION, folder=folder)
    assert (index.count(), index.ids(), index.search(entry("a").vector, 5)) == (0, set(), [])
    assert not folder.exists()


def test_nearest_first_with_cosines(index: Index) -> None:
    names = [f"a-{i}" for i in range(30)]
    index.add([entry(name) for name in names])
    assert index.count() == 30
    assert found_exactly(index, names) == []
    exact = MemoryIndex()
    exact.add([entry(name) for name in names])
    vector = entry("another").vector
    for hit, expected in zip(index.search(vector, 30), exact.search(vector, 30), strict=True):
        assert hit.id == expected.id
        assert hit.similarity == pytest.approx(expected.similarity, abs=1e-4)


def test_k_may_be_more_than_there_is_or_nothing(index: Index) -> None:
    index.add([entry("a-1"), entry("a-2")])
    assert len(index.search(entry("a-1").vector, 100)) == 2
    assert index.search(entry("a-1").vector, 0) == []


def test_where_asks_for_equal_labels(index: Index) -> None:
    index.add([entry("a-1"), entry("b-1"), Entry("bare", entry("x").vector)])
    assert index.ids({"writer": "a"}) == {"a-1"}
    assert index.ids({"writer": "a", "kind": "test"}) == {"a-1"}
    assert index.ids({"writer": "a", "kind": "other"}) == set()
    assert [hit.id for hit in index.search(entry("a-1").vector, 3, {"writer": "b"})] == ["b-1"]
    assert index.ids() == {"a-1", "b-1", "bare"}


def test_add_replaces_remove_forgets_rebuild_starts_anew(index: Index) -> None:
    index.add([entry("a-1"), entry("a-2")])
    index.add([Entry("a-1", entry("b-9").vector)])
    assert index.search(entry("b-9").vector, 1)[0].id == "a-1"
    index.remove(["a-1", "never-there"])
    assert index.ids() == {"a-2"}
    index.rebuild([entry("c-1")])
    assert index.ids() == {"c-1"}
    index.rebuild([])
    assert index.count() == 0


def test_more_than_one_request_takes(folder: Path) -> None:
    index = ChromaIndex("test", DIMENSION, folder=folder)
    names = [f"a-{i}" for i in range(2500)]
    index.add([entry(name) for name in names])
    assert index.ids() == set(names)
    assert found_exactly(index, names[::250]) == []
    index.remove(names[:2400])
    assert index.ids() == set(names[2400:])


def test_two_embeddings_never_mix(folder: Path) -> None:
    one = ChromaIndex("test", DIMENSION, folder=folder)
    other = ChromaIndex("org/other model:v2", DIMENSION, folder=folder)
    one.add([entry("a-1")])
    other.add([entry("b-1")])
    assert (one.ids(), other.ids()) == ({"a-1"}, {"b-1"})
    one.rebuild([])
    assert other.ids() == {"b-1"}


def test_a_reader_sees_what_was_written_after_it_first_read(folder: Path) -> None:
    reader, writer = (ChromaIndex("test", DIMENSION, folder=folder) for _ in range(2))
    for i in range(5):
        writer.add([entry(f"a-{i}")])
        assert reader.count() == i + 1
        assert found_exactly(reader, [f"a-{i}"]) == []


def test_held_it_is_opened_once_for_reading_and_writing(folder: Path) -> None:
    index = ChromaIndex("test", DIMENSION, folder=folder)
    with index.held():
        assert index.count() == 0 and not folder.exists(), "holding makes nothing"
    index.add([entry("a-1")])
    with index.held():
        opened = index._held
        assert index.count() == 1
        index.add([entry("a-2")])
        index.remove(["a-1"])
        assert index._held is opened and found_exactly(index, ["a-2"]) == []
    assert ChromaIndex("test", DIMENSION, folder=folder).ids() == {"a-2"}


def test_another_thread_waits_while_it_is_held(folder: Path) -> None:
    index = ChromaIndex("test", DIMENSION, folder=folder)
    index.add([entry("a-1")])
    seen: list[int] = []
    other = threading.Thread(target=lambda: seen.append(index.count()))
    with index.held():
        other.start()
        index.add([entry("a-2")])
        other.join(0.3)
        assert seen == []
    other.join(30)
    assert seen == [2]


def test_threads_may_share_it(folder: Path) -> None:
    index = ChromaIndex("test", DIMENSION, folder=folder)
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for i in range(5):
                index.add([entry(f"{name}-{i}")])
                assert found_exactly(index, [f"{name}-{i}"]) == []
        except BaseException as error:  # noqa: BLE001 - a thread would swallow it
            problems.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert index.count() == 20


# ------------------------------------------------------------------------------------------------ many processes
def test_two_processes_that_write_at_once_lose_nothing(folder: Path, start: Start) -> None:
    writers = [start(WORKER, "write", str(folder), prefix, "8", "50") for prefix in ("a", "b")]
    reader = ChromaIndex("test", DIMENSION, folder=folder)
    while any(writer.poll() is None for writer in writers):
        reader.search(entry("a-0-0").vector, 5)  # a reader beside them neither fails nor disturbs
    written = []
    for writer in writers:
        out, err = writer.communicate()
        assert writer.returncode == 0, err
        written += out.split()
    assert len(written) == 800
    assert reader.ids() == set(written)
    # A lost vector is still counted and listed; only a search shows that it is gone.
    assert {hit.id for hit in reader.search(entry("a-0-0").vector, len(written))} == set(written)
    assert found_exactly(reader, written[::20]) == []


def test_a_writer_killed_in_the_middle_loses_nothing_that_was_acknowledged(folder: Path, start: Start) -> None:
    acknowledged: list[str] = []
    for round_ in range(3):
        writer = start(WORKER, "write", str(folder), f"k{round_}", "1000", "20")
        assert writer.stdout is not None
        deadline = time.monotonic() + 60
        while sum(name.startswith(f"k{round_}") for name in acknowledged) < 40 + 7 * round_:
            assert time.monotonic() < deadline
            acknowledged.append(writer.stdout.readline().strip())
        writer.kill()
        acknowledged += [
            name for name in writer.communicate()[0].split() if name.count("-") == 2 and name.startswith("k")
        ]
    index = ChromaIndex("test", DIMENSION, folder=folder)
    whole = [name for name in acknowledged if name in index.ids()]
    # The pipe may cut the last name of a killed writer; every other one must be there.
    assert len(acknowledged) - len(whole) <= 3 and len(whole) >= 130
    assert {hit.id for hit in index.search(entry("k0-0-0").vector, index.count())} >= set(whole)
    assert found_exactly(index, whole[::10]) == []
    index.add([entry("after-0-0")])
    assert found_exactly(index, ["after-0-0"]) == []


def test_a_lock_that_is_held_is_said_and_goes_with_its_holder(folder: Path, start: Start) -> None:
    ChromaIndex("test", DIMENSION, folder=folder).add([entry("a-1")])
    holder = start(WORKER, "hold", str(folder))
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    index = ChromaIndex("test", DIMENSION, folder=folder, lock_seconds=0.2)
    for act in (lambda: index.add([entry("a-2")]), index.count):
        with pytest.raises(IndexUnavailableError, match=r"in use by another process.*try again"):
            act()
    holder.kill()
    holder.wait()
    index.add([entry("a-2")])
    assert index.count() == 2


# ------------------------------------------------------------------------------------------------ broken
def damage_database(folder: Path) -> None:
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"this is no database" * 1000)


def damage_middle(folder: Path) -> None:
    path = folder / "chroma" / "chroma.sqlite3"
    data = bytearray(path.read_bytes())
    data[4096 : len(data) - 4096] = os.urandom(len(data) - 8192)
    path.write_bytes(data)


def damage_vectors(folder: Path) -> None:
    """What a writer leaves that is killed while Chroma writes its vector files."""
    written = [path for path in (folder / "chroma").rglob("*.pickle") if path.stat().st_size]
    assert written, "Chroma wrote no vector file; add more vectors"
    for path in written:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replace_by_folder(folder: Path) -> None:
    shutil.rmtree(folder / "chroma")
    (folder / "chroma").mkdir()
    (folder / "chroma" / "chroma.sqlite3").mkdir()


@pytest.mark.parametrize("damage", [damage_database, damage_middle, replace_by_folder, damage_vectors])
def test_a_broken_index_is_one_clear_line_and_rebuild_mends_it(folder: Path, damage: object, start: Start) -> None:
    ChromaIndex("test", DIMENSION, folder=folder).add([entry(f"a-{i}") for i in range(1500)])
    damage(folder)  # type: ignore[operator]
    index = ChromaIndex("test", DIMENSION, folder=folder)
    for act in (lambda: index.search(entry("a-1").vector, 1), lambda: index.search(entry("a-2").vector, 9)):
        with pytest.raises(IndexBrokenError, match=f"{folder} cannot be used") as caught:
            act()
        assert "\n" not in str(caught.value) and "delete" in caught.value.hint
    index.rebuild([entry("a-3")])
    assert index.ids() == {"a-3"}


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file stands here")
    with pytest.raises(IndexUnavailableError, match="cannot be used"):
        ChromaIndex("test", DIMENSION, folder=tmp_path / "index").add([entry("a-1")])


def test_a_dotenv_of_the_working_folder_and_chroma_variables_change_nothing(folder: Path, start: Start) -> None:
    (folder.parent / ".env").write_text(
        "CHROMA_SERVER_HOST=elsewhere.invalid\nIS_PERSISTENT=false\nANONYMIZED_TELEMETRY=true\n"
    )
    environment = {"ANONYMIZED_TELEMETRY": "true", "CHROMA_API_IMPL": "chromadb.api.fastapi.FastAPI"}
    writer = start(WORKER, "write", str(folder), "a", "1", "3", cwd=folder.parent, env=environment)
    out, err = writer.communicate(timeout=60)
    assert writer.returncode == 0, err
    assert ChromaIndex("test", DIMENSION, folder=folder).ids() == set(out.split())


def test_a_dotenv_that_chroma_refuses_is_said(folder: Path, start: Start) -> None:
    (folder.parent / ".env").write_text("IS_PERSISTENT=perhaps\n")
    writer = start(WORKER, "write", str(folder), "a", "1", "3", cwd=folder.parent)
    _, err = writer.communicate(timeout=60)
    assert "IndexUnavailableError: chromadb cannot be loaded" in err and "a .env file in the working folder" in err


# ------------------------------------------------------------------------------------------------ a server
def free_port() -> int:
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path, start: Start) -> Iterator[str]:
    """A real Chroma server of the installed package."""
    port = free_port()
    code = "import sys; from chromadb.cli.cli import app; sys.exit(app())"
    options = ("--path", str(tmp_path / "served"), "--host", "127.0.0.1", "--port", str(port))
    with (tmp_path / "server.log").open("w") as log:
        process = start("-c", code, "run", *options, stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        assert process.poll() is None and time.monotonic() < deadline, "the Chroma server did not start"
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"


def test_a_server_is_used_like_the_embedded_index(server: str) -> None:
    index = ChromaIndex("test", DIMENSION, url=server)
    assert (index.count(), index.search(entry("a-1").vector, 3)) == (0, [])
    names = [f"a-{i}" for i in range(1200)]
    index.add([entry(name) for name in names])
    assert index.count() == 1200
    assert found_exactly(index, names[::100]) == []
    assert index.ids({"writer": "b"}) == set()
    index.remove(names[10:])
    assert ChromaIndex("test", DIMENSION, url=server).ids() == set(names[:10])
    index.rebuild([entry("c-1")])
    assert index.ids() == {"c-1"}


def test_many_clients_of_a_server_write_at_once(server: str) -> None:
    def work(prefix: str) -> None:
        ChromaIndex("test", DIMENSION, url=server).add([entry(f"{prefix}-{i}") for i in range(100)])

    threads = [threading.Thread(target=work, args=(prefix,)) for prefix in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = ChromaIndex("test", DIMENSION, url=server)
    assert index.count() == 300
    assert found_exactly(index, [f"{p}-{i}" for p in "abc" for i in (0, 50, 99)]) == []


def test_a_server_that_is_down_is_one_clear_line() -> None:
    index = ChromaIndex("test", DIMENSION, url=f"http://someone:secret@127.0.0.1:{free_port()}")
    with pytest.raises(IndexUnavailableError, match="check TRIAGE_CHROMA_URL") as caught:
        index.count()
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.retrieve.chroma._HTTP_SECONDS", 0.6)
    with contextlib.closing(socket.socket()) as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        index = ChromaIndex("test", DIMENSION, url=f"http://127.0.0.1:{mute.getsockname()[1]}")
        begun = time.monotonic()
        with pytest.raises(IndexUnavailableError, match="timed out"):
            index.search(entry("a").vector, 1)
        assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host:1", "http://", "http://host:port", "http://host:1/path", "http://[::1"]
)
def test_a_url_that_is_none_says_what_to_give(url: str) -> None:
    with pytest.raises(UsageError, match="use http://host:port"):
        ChromaIndex("test", DIMENSION, url=url)
