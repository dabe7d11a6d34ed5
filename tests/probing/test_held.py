"""Calls that do not come back."""

from __future__ import annotations

import threading

import pytest

from triage.probing.held import Held


def test_one_that_does_not_come_back_is_waited_for_no_longer_and_none_is_begun_beside_it() -> None:
    held, gate, calls = Held(), threading.Event(), []

    def call() -> str:
        calls.append(1)
        gate.wait(30)
        return "back"

    assert held.within(0.05, call) is None
    assert held.busy
    assert held.within(0.05, call) is None
    assert len(calls) == 1
    gate.set()
    while held.busy:
        pass
    assert held.within(10, call) == "back"


def test_its_errors_are_those_of_the_call() -> None:
    with pytest.raises(ZeroDivisionError):
        Held().within(10, lambda: 1 / 0)
