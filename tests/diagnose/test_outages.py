"""Outages that ended, the node that the accounting names, and text that is no log."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

AT = "[Fri May  1 10:{:02d}:00 2026] "


@pytest.mark.parametrize(
    ("gone", "back"),
    [
        ("nfs: server fs2 not responding, still trying", "nfs: server fs2 OK"),
        (
            "Lustre: w-OST1-osc-ff: Connection to w-OST1 (at 10.0.0.9@o2ib) was lost; in progress operations using this service will wait",
            "Lustre: w-OST1-osc-ff: Connection restored to 10.0.0.9@o2ib (at 10.0.0.9@o2ib)",
        ),
    ],
)
def test_an_outage_of_a_minute_is_no_failure(diagnosed: Diagnose, gone: str, back: str) -> None:
    assert diagnosed({"dmesg.txt": AT.format(1) + gone + "\n" + AT.format(2) + back + "\n"}).outcome == "healthy"


@pytest.mark.parametrize("back", ["", AT.format(2) + "nfs: server other OK\n", AT.format(40) + "nfs: server fs2 OK\n"])
def test_one_that_went_on_is(diagnosed: Diagnose, back: str) -> None:
    d = diagnosed({"dmesg.txt": AT.format(1) + "nfs: server fs2 not responding, still trying\n" + back})
    assert d.failure_type == "storage-error"


@pytest.mark.parametrize(
    ("row", "nodes"),
    [
        ("881|NODE_FAIL|0:0|n[001-128]|n077", ("n077",)),
        ("881|NODE_FAIL|0:0|n012|", ("n012",)),
        ("881|NODE_FAIL|0:0|n[001-128]|None", ()),
        ("881|NODE_FAIL|0:0|n1,n2|", ()),
    ],
)
def test_the_accounting_names_the_dead_node(diagnosed: Diagnose, row: str, nodes: tuple[str, ...]) -> None:
    d = diagnosed({"sacct.txt": f"JobID|State|ExitCode|NodeList|FailedNode\n{row}\n"})
    assert (d.failure_type, d.suspects.nodes) == ("node-failure", nodes)
    assert d.action == ("restart-excluding" if nodes else "restart")


@pytest.mark.parametrize("label", ["sample text: ", "generated> ", "prediction [3]: ", "completion: "])
def test_text_after_a_label_is_no_log(diagnosed: Diagnose, label: str) -> None:
    quoted = f"{label}slurmstepd: error: *** JOB 1 ON n CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    assert diagnosed({"out.txt": "step 1 loss 2.0\n" + quoted + "Training complete\n"}).outcome == "healthy"
