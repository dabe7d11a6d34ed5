"""Exceptions with no better type that were raised where the data are read: the dataset could not be loaded. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from triage.evidence.match import Best, Finding
from triage.evidence.tracebacks import Traceback

_LIBRARY = re.compile(
    r"(?:site|dist)-packages/(?:datasets|webdataset|streaming|litdata|tensorflow_datasets|ffcv|lhotse)/"
)
_ANYTHING = frozenset({"file-not-found", "os-error", "runtime-error", "value-error"})
_OF_NO_KIND = frozenset({"python.uncaught", "py.other-exception"})
_OWN_READER = re.compile(
    r"(?:^|[/_])(?:data|datasets?|data_?loaders?|data_?(?:modules?|utils|pipeline)|corpus)(?:_\w{1,40})?\.py$",
    re.IGNORECASE,
)


def weigh(best: Best, tracebacks: Iterable[Traceback]) -> None:
    for t in tracebacks:
        key = (t.end.file, t.end.number)
        finding = best.get(key)
        if finding is None or finding.signature.role != "root" or not _of_data(finding, t):
            continue
        title = f"{finding.signature.title}, where the data are read"
        signature = replace(finding.signature, failure_type="dataset-loading-error", title=title)
        best[key] = replace(finding, signature=signature)


def _of_data(finding: Finding, t: Traceback) -> bool:
    """Was it raised by a library of datasets; or, if it is the program's own exception, by its reader of data?"""
    if t.frames and finding.signature.failure_type in _ANYTHING and _LIBRARY.search(t.frames[-1].file):
        return True
    own = t.own_frame
    return (
        finding.signature.id in _OF_NO_KIND
        and own is not None
        and own is t.frames[-1]
        and bool(_OWN_READER.search(own.file))
    )
