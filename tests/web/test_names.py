from __future__ import annotations

import time
from pathlib import PurePosixPath

from triage.web.names import Taken


def given(*names: str) -> list[str]:
    taken = Taken()
    return [str(taken.another(PurePosixPath(name))) for name in names]


def test_no_two_files_and_no_file_and_folder_share_a_name() -> None:
    assert given("a", "a", "2-a", "a") == ["a", "2-a", "2-2-a", "3-a"]
    assert given("a", "a/b", "a/b", "a/c") == ["a", "2-a/b", "3-a/b", "2-a/c"]
    assert given("a/b", "a", "a/c") == ["a/b", "2-a", "a/c"]


def test_thousands_of_files_are_named_at_once() -> None:
    """One thread answers everybody."""
    began = time.process_time()
    assert len(set(given(*["node/log"] * 4096))) == 4096
    assert len(set(given(*(f"node{n}/log" for n in range(4096))))) == 4096
    assert time.process_time() - began < 5
