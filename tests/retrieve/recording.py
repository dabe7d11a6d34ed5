"""Other processes that record incidents: started by test_archive.py.

recording.py record URL HOME SERVER COUNT    records so many, the database first and the index after; prints each number
recording.py stop-between URL HOME           records one in the database, says so, and never comes to the index
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.store.samples import ECC, as_json
from triage.retrieve.archive import ArchiveIndex
from triage.retrieve.chroma import ChromaIndex
from triage.retrieve.embedding import MiniLM
from triage.store.incidents import IncidentStore
from triage.store.known import KnownReader


def main(what: str, url: str, home: str, server: str = "", count: str = "1") -> None:
    model = MiniLM()
    if server:
        index = ChromaIndex(model.name, model.dimension, url=server, part="recorded")
    else:
        index = ChromaIndex(model.name, model.dimension, folder=Path(home) / "index", part="recorded")
    with IncidentStore.open(url) as store, KnownReader.open(url) as reader:
        for _ in range(int(count)):
            sys.stdout.write(f"recorded {store.record(ECC, as_json(ECC))}\n")
            sys.stdout.flush()
            if what == "stop-between":
                time.sleep(60)
            ArchiveIndex(index, model, reader).heal()


if __name__ == "__main__":
    main(*sys.argv[1:])
