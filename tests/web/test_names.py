from __future__ import annotations

import time
from pathlib import PurePosixPath

from triage.web.names import Taken, safe_name


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


def test_letters_of_any_alphabet_tell_two_logs_apart() -> None:
    assert str(safe_name("u\u0308nï.log")) == "ünï.log"
    assert str(safe_name("ошибка/узел 7.log")) == "ошибка/узел_7.log"
    assert str(safe_name("../．．/\u202egol.exe\x00")) == "_/_gol.exe_"
    long = safe_name("ü" * 500 + ".log").name
    assert len(long.encode()) <= 120 and long.endswith("ü.log")
