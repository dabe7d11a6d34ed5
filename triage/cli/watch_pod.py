"""A Kubernetes pod as `triage watch` sees it: its phase by kubectl, its processes by `kubectl exec`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from triage import reach
from triage.errors import UsageError
from triage.probing.probe import RemoteProbe, Whose
from triage.probing.values import NodeView
from triage.text import excerpt, printable
from triage.watching.values import Scheduled

_TIME = 30.0  # seconds for kubectl


class Pod:
    """Errors: UsageError: there is no such pod, or its name is none."""

    def __init__(self, name: str, namespace: str = "", container: str = "", url: str = "") -> None:
        self._probe = RemoteProbe(reach.kubectl([name], namespace, container), Whose(everything=True, url=url))
        space = ["-n", namespace] if namespace else []
        self._ask = ["kubectl", "get", "pod", name, *space, "-o", "json"]
        self._name, self._known, self._runs = name, False, False

    def scheduled(self) -> Scheduled:
        here = reach.local()
        answer = here.run(here.nodes[0], self._ask, timeout=_TIME)
        lines = answer.err.decode("utf-8", "replace").strip().splitlines()
        said = answer.problem or excerpt(printable(lines[-1].strip()) if lines else "it gave no answer", limit=300)
        if answer.code != 0:
            missing = "NotFound" in said or "not found" in said
            if not self._known:
                raise UsageError(
                    f"pod {self._name} cannot be watched: {said}", "see `kubectl get pods`, and give -n NAMESPACE"
                )
            return Scheduled("finished", "the pod is gone") if missing else Scheduled("", f"kubectl: {said}")
        try:
            status = json.loads(answer.out)["status"]
            word = _word(status)
        except (ValueError, KeyError, TypeError):
            return Scheduled("", "kubectl printed no pod")
        self._known, self._runs = True, word.state == "running"
        return word

    def look(self, devices: bool, paths: Sequence[str]) -> tuple[NodeView, ...]:
        return self._probe.look(devices, paths) if self._runs else ()


def _word(status: dict[str, Any]) -> Scheduled:
    phase, reason = str(status.get("phase", "")), str(status.get("reason") or "")
    waiting = [
        str(state["waiting"].get("reason") or "")
        for one in status.get("containerStatuses") or ()
        if "waiting" in (state := one.get("state") or {})
    ]
    disrupted = [
        str(condition.get("reason") or "")
        for condition in status.get("conditions") or ()
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True"
    ]
    why = ", ".join(dict.fromkeys(filter(None, (reason, *waiting, *disrupted))))
    words = f"Kubernetes: {phase}" + (f" ({why})" if why else "")
    if disrupted or reason in ("Preempting", "Preempted", "Evicted"):
        return Scheduled("preempted", words, failed=True)
    if phase in ("Succeeded", "Failed"):
        return Scheduled("finished", words, phase == "Failed")
    return Scheduled("queued" if phase == "Pending" else "running" if phase == "Running" else "", words)
