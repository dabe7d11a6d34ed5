"""Who asked for dumps, who followed, who had nothing to wait for."""

from __future__ import annotations

from tests.helpers import lines
from triage.evidence.hang import dumps

ASKED = "[rank3]:[E1231 12:00:01.1 ProcessGroupNCCL.cpp:684] [Rank 3] First PG on this rank to signal dumping."
OWN = "[rank5]:[E1231 12:00:01.1 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0 Rank 5] Received a dump signal due to a collective timeout from this local rank and we will try our best to dump the debug info."
FOLLOWED = "[rank{0}]:[E1231 12:00:02.1 ProcessGroupNCCL.cpp:1447] [PG ID 0 PG GUID 0 Rank {0}] Observed flight recorder dump signal from another rank via TCPStore."
STATE = "[rank{0}]:[E1231 12:00:02.1] [Rank {0}] failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: {1}, last completed work: {2}"


def test_the_initiator_and_its_followers() -> None:
    found = dumps(lines("\n".join([FOLLOWED.format(0), ASKED, FOLLOWED.format(1), FOLLOWED.format(3), OWN])))
    assert (found.initiators, found.followers) == ((3, 5), (0, 1))


def test_a_rank_that_completed_all_it_enqueued_never_joined() -> None:
    text = "\n".join(STATE.format(*s) for s in ((0, 12, 8), (1, 12, 8), (2, 8, 8)))
    assert dumps(lines(text)).idle == (2,)


def test_nobody_is_idle_where_all_are_or_most_are() -> None:
    everyone = "\n".join(STATE.format(r, 8, 8) for r in range(3))
    most = "\n".join(STATE.format(r, 8, 8) for r in range(3)) + "\n" + STATE.format(3, 9, 8)
    assert dumps(lines(everyone)).idle == ()
    assert dumps(lines(most)).idle == ()
