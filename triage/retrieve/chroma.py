"""The vector index in Chroma: embedded in the state folder, or a server. The only module that imports chromadb.

Two processes in one embedded folder lose vectors without a word, read half-written files or crash, so every operation
takes a file lock and opens the folder inside it (about 7 ms); a client that was opened earlier would not see what others
wrote. A server is one process and needs no lock. One collection an embedding: vectors of two models never meet.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from triage import disk
from triage.errors import IndexBrokenError, IndexUnavailableError, TriageError
from triage.retrieve.chroma_url import authorization, port_of, split_url, without_password
from triage.retrieve.embedding import first_line
from triage.retrieve.index import Entry, Hit, Vector

_THREADS = threading.RLock()  # Chroma shares one system a folder between the clients of a process, and not safely
_LOCK_SECONDS = 30.0
_HTTP_SECONDS = 10.0
_BATCH = 1000


class ChromaIndex:
    """An Index. embedding, dimension: of its vectors; folder: where it is embedded; url: of a server instead; part: its name.

    The embedded database is folder/chroma, made by the first write; the lock is folder/lock.
    """

    def __init__(
        self,
        embedding: str,
        dimension: int,
        *,
        folder: Path | None = None,
        url: str = "",
        part: str = "",
        lock_seconds: float = _LOCK_SECONDS,
    ) -> None:
        if (folder is None) == (not url):
            raise ValueError("give a folder or a URL")
        if url:
            split_url(url)
        self.collection = _collection_name(f"{part}-{embedding}" if part else embedding, dimension)
        self._folder, self._url = folder, url
        self._lock_seconds = lock_seconds
        self._held: tuple[int, Any] | None = None  # thread and client

    def add(self, entries: Sequence[Entry]) -> None:
        for start in range(0, len(entries), _BATCH):  # the lock is free between the parts, for those who read
            with self._client() as client:
                self._upsert(client, entries[start : start + _BATCH])

    def remove(self, ids: Collection[str]) -> None:
        with self._client() as client:
            collection, names = self._created(client), sorted(ids)
            for start in range(0, len(names), _BATCH):
                collection.delete(ids=names[start : start + _BATCH])

    def search(self, vector: Vector, k: int, where: Mapping[str, str] | None = None) -> list[Hit]:
        return self._search([vector], k, where)[0]

    def searches(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        return self._search(vectors, k) if vectors else []

    def among(self, ids: Collection[str]) -> set[str]:
        with self._read() as collection:
            return set(collection.get(ids=sorted(ids), include=[])["ids"]) if collection and ids else set()

    def ids(self, where: Mapping[str, str] | None = None) -> set[str]:
        with self._read() as collection:
            return set(collection.get(where=_where(where), include=[])["ids"]) if collection else set()

    def count(self) -> int:
        with self._read() as collection:
            return int(collection.count()) if collection else 0

    def rebuild(self, entries: Sequence[Entry]) -> None:
        """Also mends an embedded index that does not open any more: its folder is made anew."""
        try:
            with self._client() as client:
                self._drop(client)
        except IndexBrokenError:
            self._wipe()
        self.add(entries)

    # ------------------------------------------------------------------------------------------ inside
    def _search(self, vectors: Sequence[Vector], k: int, where: Mapping[str, str] | None = None) -> list[list[Hit]]:
        """Fewer than k where there are fewer. To count first would take a quarter of a second with 100,000."""
        with self._read() as collection:
            if collection is None or k < 1:
                return [[] for _ in vectors]
            found = collection.query(
                query_embeddings=list(vectors), n_results=k, where=_where(where), include=["distances"]
            )
        return [
            [Hit(name, 1.0 - float(distance)) for name, distance in zip(*each, strict=True)]
            for each in zip(found["ids"], found["distances"], strict=True)
        ]

    def _upsert(self, client: Any, entries: Sequence[Entry]) -> None:
        self._created(client).upsert(
            ids=[e.id for e in entries],
            embeddings=[e.vector for e in entries],
            metadatas=[dict(e.labels) or None for e in entries],
        )

    def _created(self, client: Any) -> Any:
        # embedding_function=None: Chroma's own would fetch a model. Vectors are always given.
        return client.get_or_create_collection(
            self.collection, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def _drop(self, client: Any) -> None:
        from chromadb.errors import NotFoundError

        with contextlib.suppress(NotFoundError):
            client.delete_collection(self.collection)

    def _wipe(self) -> None:
        if self._folder is not None:
            with self._guard(), self._locked(self._folder):
                shutil.rmtree(self._folder / "chroma")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """To open 100,000 vectors takes a third of a second; other threads and processes wait meanwhile."""
        if self._unwritten():
            yield
            return
        with self._client() as client:
            self._held = (threading.get_ident(), client)
            try:
                yield
            finally:
                self._held = None

    def _unwritten(self) -> bool:
        return self._folder is not None and not (self._folder / "chroma" / "chroma.sqlite3").exists()

    @contextlib.contextmanager
    def _read(self) -> Iterator[Any]:
        """The collection, or None where nothing was written yet: a reader makes nothing."""
        if self._unwritten():
            yield None
            return
        with self._client() as client:
            from chromadb.errors import NotFoundError

            try:
                collection = client.get_collection(self.collection, embedding_function=None)
            except NotFoundError:
                collection = None
            yield collection

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        if self._held is not None and self._held[0] == threading.get_ident():
            with self._guard():
                yield self._held[1]
            return
        lock = contextlib.nullcontext() if self._folder is None else self._locked(self._folder)
        with self._guard(), _THREADS, lock:
            client = self._opened()
            try:
                yield client
            finally:
                client.close()

    @contextlib.contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        from filelock import FileLock, Timeout

        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / "lock", timeout=self._lock_seconds):
                yield
        except Timeout:
            raise IndexUnavailableError(
                f"the index {folder} is in use by another process for more than {self._lock_seconds:.0f} s",
                "try again; the lock goes when that process ends",
            ) from None

    def _opened(self) -> Any:
        _load()
        from chromadb.api.shared_system_client import SharedSystemClient

        try:
            return _embedded(self._folder / "chroma") if self._folder is not None else _server(self._url)
        except BaseException:
            SharedSystemClient.clear_system_cache()  # it keeps the half-made one, and would hand it out for ever
            raise

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Chroma's own errors, SQLite's, HTTP's and Rust's panics share no base; all become IndexUnavailableError."""
        try:
            yield
        except (TriageError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of the Rust part is a BaseException
            raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> IndexUnavailableError:
        if self._folder is not None:
            if (wrong := disk.trouble(self._folder))[0]:  # to build it anew would not help
                return IndexUnavailableError(f"the index {self._folder}: {wrong[0]}", wrong[1])
            kind = IndexUnavailableError if isinstance(error, OSError | ImportError) else IndexBrokenError
            hint = f"delete {self._folder} and it is built anew, or set TRIAGE_HOME to another folder"
            return kind(f"the index {self._folder} cannot be used: {first_line(error)}", hint)
        message = f"the Chroma server {without_password(self._url)} cannot be used: {first_line(error)}"
        return IndexUnavailableError(message, "check TRIAGE_CHROMA_URL, or unset it to use the embedded index")


def _collection_name(embedding: str, dimension: int) -> str:
    """Chroma takes 3 to 512 of A-Z a-z 0-9 . _ - with a letter or digit at both ends."""
    return f"triage-{re.sub(r'[^A-Za-z0-9._-]', '-', embedding)[:200]}-{dimension}"


def _where(labels: Mapping[str, str] | None) -> dict[str, Any] | None:
    parts = [{name: {"$eq": value}} for name, value in (labels or {}).items()]
    return {"$and": parts} if len(parts) > 1 else parts[0] if parts else None


def _load() -> None:
    """Chroma reads variables and the .env of the working folder when it is imported, and refuses to load over some."""
    try:
        import chromadb  # noqa: F401
    except Exception as error:
        hint = "install the package again; a .env file in the working folder or variables of Chroma may be the reason"
        raise IndexUnavailableError(f"chromadb cannot be loaded: {first_line(error)}", hint) from error


def _settings() -> Any:
    """Chroma's defaults: variables and a .env of the working folder are not for us, and reading them takes longer than to
    open the folder. No telemetry."""
    from chromadb.config import Settings

    defaults = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    return Settings.model_construct(**{**defaults, "anonymized_telemetry": False})


def _embedded(path: Path) -> Any:
    import chromadb

    return chromadb.PersistentClient(path=str(path), settings=_settings())


def _server(url: str) -> Any:
    import chromadb

    parts = split_url(url)
    headers = authorization(parts.username, parts.password)
    _ask(f"{parts.scheme}://{parts.hostname}:{port_of(parts)}/api/v2/heartbeat", headers)
    client = chromadb.HttpClient(
        host=str(parts.hostname),
        port=port_of(parts),
        ssl=parts.scheme == "https",
        headers=headers,
        settings=_settings(),
    )
    # Chroma's session waits for ever; one that stops answering must not hold a diagnosis.
    session = getattr(getattr(client, "_server", None), "_session", None)
    if session is not None:
        session.timeout = _HTTP_SECONDS
    return client


def _ask(url: str, headers: Mapping[str, str]) -> None:
    """Does a server answer there, within seconds? Chroma's own client asks without a limit."""
    import httpx

    httpx.get(url, headers=dict(headers), timeout=_HTTP_SECONDS / 2).raise_for_status()
