"""What a person types for a pod or a job: NAME, NAMESPACE/NAME, for a job KIND/NAME too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.errors import UsageError
from triage.kube.kinds import WORDS, Kind
from triage.text import printable

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Asked:
    """pod: it is one pod that is asked for; kind: the only kind of job that is meant; namespace: "" for the context's."""

    name: str
    namespace: str = ""
    pod: bool = False
    kind: Kind | None = None

    def __str__(self) -> str:
        what = "pod" if self.pod else self.kind.name if self.kind else "job"
        return f"{what} {self.namespace}/{self.name}" if self.namespace else f"{what} {self.name}"


def parse(text: str, namespace: str = "", *, pod: bool = False) -> Asked:
    """Errors: UsageError for what can be no name, and for two namespaces."""
    *before, name = text.split("/")
    kind = None
    if before and before[-1].lower() in (("pod", "pods", "po") if pod else WORDS):
        kind = WORDS.get(before.pop().lower())
    if len(before) > 1 or not _NAME.fullmatch(name) or not all(map(_NAMESPACE.fullmatch, before)):
        form = "NAME or NAMESPACE/NAME" if pod else "NAME, NAMESPACE/NAME or KIND/NAME (pytorchjob/train)"
        raise UsageError(
            f"{printable(text[:80])!r} is no {'pod' if pod else 'job'} of Kubernetes", f"give {form}, in small letters"
        )
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise UsageError(f"{printable(namespace[:80])!r} is no namespace", "names hold small letters, digits and -")
    if before and namespace and before[0] != namespace:
        raise UsageError(f"two namespaces are given: {before[0]} and {namespace}", "give one of them")
    return Asked(name, before[0] if before else namespace, pod, kind)
