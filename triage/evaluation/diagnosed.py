"""What a full diagnosis is measured on beside its labels and lines: class, suspects, words, certainty, retrieval.

The rules of measures.py hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.evaluation.answers import Answer, host, items, numbers, text, texts
from triage.evaluation.measures import Measure, Value, type_accepted


# ------------------------------------------------------------------------------------------------ labels
def cause_class(a: Answer) -> Value:
    """The root-cause class is the label. Healthy cases have none and do not count."""
    want = text(a.want.get("root_cause_class"))
    return float(text(a.got.get("root_cause_class")) == want) if want and not a.healthy else None


def cause_class_accepted(a: Answer) -> Value:
    """The root-cause class is the label, or one that the label accepts. Healthy cases do not count."""
    want = texts(a.want.get("root_cause_class"))
    accepted = want + texts(a.want.get("root_cause_class_accept"))
    return float(text(a.got.get("root_cause_class")) in accepted) if want and not a.healthy else None


def status(a: Answer) -> Value:
    """The status is one that the label calls fair: not surer than the log allows."""
    want = texts(a.want.get("status"))
    return float(a.status in want) if want else None


# ------------------------------------------------------------------------------------------------ where and in which words
def _node_top(a: Answer, k: int) -> Value:
    want = {host(x) for x in items(a.want.get("nodes"))}
    return float(bool(want & set(a.nodes[:k]))) if want else None


def _rank_top(a: Answer, k: int) -> Value:
    want = set(numbers(a.want.get("ranks")))
    return float(bool(want & set(a.ranks[:k]))) if want else None


def node_top1(a: Answer) -> Value:
    """The first suspect node is a labelled one (host names without domain)."""
    return _node_top(a, 1)


def node_top5(a: Answer) -> Value:
    """A labelled node is among the first five suspects."""
    return _node_top(a, 5)


def rank_top1(a: Answer) -> Value:
    """The first suspect rank is a labelled one."""
    return _rank_top(a, 1)


def rank_top5(a: Answer) -> Value:
    """A labelled rank is among the first five suspects."""
    return _rank_top(a, 5)


def must_mention(a: Answer) -> Value:
    """The root cause or the remediation names at least one alternative of each group that the label demands."""
    groups = items(a.want.get("must_mention"))
    return float(all(any(str(w).lower() in a.words for w in items(g)) for g in groups)) if groups else None


def false_cordon(a: Answer) -> Value:
    """A suspect node was named that the label does not name. Counts where nodes are labelled, be it as an empty list,
    and on healthy jobs."""
    if a.want.get("nodes") is None and not a.healthy:
        return None
    return float(bool(set(a.nodes) - {host(x) for x in items(a.want.get("nodes"))}))


# ------------------------------------------------------------------------------------------------ knowing what one knows
def answered(a: Answer) -> Value:
    """There was an answer: no crash, no error, no timeout."""
    return float(a.answered)


def selective_established(a: Answer) -> Value:
    """Of those answered with the status established: type_accepted."""
    return type_accepted(a) if a.status == "established" else None


def selective_supported(a: Answer) -> Value:
    """Of those answered with the status supported: type_accepted."""
    return type_accepted(a) if a.status == "supported" else None


def selective_hypothesis(a: Answer) -> Value:
    """Of those answered with the status hypothesis: type_accepted."""
    return type_accepted(a) if a.status == "hypothesis" else None


def selective_unknown(a: Answer) -> Value:
    """Of those answered with the status unknown: type_accepted."""
    return type_accepted(a) if a.status == "unknown" else None


# ------------------------------------------------------------------------------------------------ retrieval
def _similar(a: Answer) -> tuple[list[str], list[str]]:
    found = [text(s.get("incident")) for s in items(a.got.get("similar")) if isinstance(s, Mapping)]
    return texts(a.want.get("similar")), found


def _recall_at(a: Answer, k: int) -> Value:
    want, found = _similar(a)
    return len(set(want) & set(found[:k])) / len(set(want)) if want else None


def recall_at_1(a: Answer) -> Value:
    """Of the incidents that the label calls similar, the share that is the first one found."""
    return _recall_at(a, 1)


def recall_at_3(a: Answer) -> Value:
    """Of the incidents that the label calls similar, the share among the first three found."""
    return _recall_at(a, 3)


def recall_at_5(a: Answer) -> Value:
    """Of the incidents that the label calls similar, the share among the first five found."""
    return _recall_at(a, 5)


def mrr(a: Answer) -> Value:
    """One over the place of the first incident found that the label calls similar; 0 when none is found."""
    want, found = _similar(a)
    return next((1 / i for i, name in enumerate(found, 1) if name in want), 0.0) if want else None


DIAGNOSED = (
    Measure("cause_class", cause_class),
    Measure("cause_class_accepted", cause_class_accepted),
    Measure("status", status),
    Measure("node_top1", node_top1),
    Measure("node_top5", node_top5),
    Measure("rank_top1", rank_top1),
    Measure("rank_top5", rank_top5),
    Measure("must_mention", must_mention),
    Measure("false_cordon", false_cordon, "lower"),
    Measure("answered", answered),
    Measure("selective_established", selective_established),
    Measure("selective_supported", selective_supported),
    Measure("selective_hypothesis", selective_hypothesis),
    Measure("selective_unknown", selective_unknown),
    Measure("recall_at_1", recall_at_1, kind="mean"),
    Measure("recall_at_3", recall_at_3, kind="mean"),
    Measure("recall_at_5", recall_at_5, kind="mean"),
    Measure("mrr", mrr, kind="mean"),
)
"""What a full diagnosis says beside."""
