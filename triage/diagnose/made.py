"""Signatures that no pattern finds: what they stand for is worked out of many lines."""

from __future__ import annotations

from dataclasses import replace

from triage.domain import Signature

UNCAUGHT = Signature(
    id="python.uncaught",
    title="an exception that no signature knows ended a traceback",
    patterns=(),
    failure_type="runtime-error",
    root_cause_class="software-bug",
    role="root",
    remedy="Read the traceback: the deepest frame of your own code is where to look.",
    component="python",
    weight=35,
)

MISMATCH = Signature(
    id="collective.mismatch",
    title="ranks waited in different collectives at the same place: another operation than the others'",
    patterns=(),
    failure_type="collective-mismatch",
    root_cause_class="software-bug",
    role="root",
    remedy="Look for code that only some ranks run, or for uneven data: rerun with TORCH_DISTRIBUTED_DEBUG=DETAIL.",
    component="pytorch",
    weight=75,
    check="TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks and collectives that differ",
)
MISMATCH_OF_SIZES = replace(
    MISMATCH,
    id="collective.other-size",
    title="ranks give one collective different sizes: another number of elements than the others",
    remedy="Look for data or modules that differ from rank to rank, and that decide what is gathered or reduced: rerun with TORCH_DISTRIBUTED_DEBUG=DETAIL.",
)

UNEVEN = Signature(
    id="collective.uneven-calls",
    title="ranks number the collectives of one group differently: some made calls that the others did not",
    patterns=(),
    failure_type="collective-mismatch",
    root_cause_class="software-bug",
    role="root",
    remedy="Look for a collective within code that only some ranks run (logging, evaluation or saving on rank 0 alone), or for uneven data.",
    component="pytorch",
    weight=65,
    check="TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks and collectives that differ; what does the odd rank do that the others do not?",
)

OWN_CODE = Signature(
    id="python.own-frame",
    title="the deepest frame of the program's own code",
    patterns=(),
    failure_type="unknown",
    root_cause_class="unknown",
    role="context",
    remedy="",
    weight=50,
)

ABSENT = Signature(
    id="flight.rank-missing",
    title="others wait in a collective that this rank never entered",
    patterns=(),
    failure_type="hang",
    root_cause_class="unknown",
    role="root",
    outcome="hung",
    remedy="Look at what the missing rank does: its stack (py-spy dump --pid PID), its log, and the kernel log of its node.",
    component="pytorch",
    weight=60,
    check="py-spy dump --pid PID of the missing rank; dmesg of its node",
)
STALLED = Signature(
    id="flight.gpu-stalled",
    title="a collective that others finished did not finish on this rank's GPU",
    patterns=(),
    failure_type="hang",
    root_cause_class="unknown",
    role="root",
    outcome="hung",
    remedy="Look at the rank's GPU and links: Xid lines in the kernel log of its node, nvidia-smi -q, the NCCL log of the rank.",
    component="pytorch",
    weight=58,
    check="dmesg and nvidia-smi -q on the node of the rank",
)
