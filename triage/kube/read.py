"""The server's JSON as values. Lenient: what is absent, or of a form that a newer server writes, is left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from triage.kube.values import (
    ENDED_BADLY,
    ENDED_WELL,
    Condition,
    Container,
    Ended,
    Event,
    Job,
    Node,
    Owner,
    Pod,
)

Json = Mapping[str, Any]

# What launchers are told by; any other variable may hold a secret and is not looked at.
_ENV = frozenset(
    {"RANK", "WORLD_SIZE", "NODE_RANK", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "NPROC_PER_NODE"}
)  # fmt: skip
_ENV_VALUE = re.compile(r"\d{1,7}|auto|gpu|cpu")
_STATES = ("running", "terminated", "waiting")
# Of conditions that are true at a time, the one that says most; volcano and others have words of their own.
_TOLD = (*sorted(ENDED_BADLY), *sorted(ENDED_WELL), "Suspended", "Restarting", "Running", "Created")
_GPU = re.compile(r"(?:nvidia|amd|habana|intel)\.(?:com|ai)/(?:gpu|gaudi|i915)$")


def pod(raw: Json) -> Pod:
    meta, spec, status = _map(raw, "metadata"), _map(raw, "spec"), _map(raw, "status")
    return Pod(
        name=_text(meta, "name"),
        namespace=_text(meta, "namespace"),
        uid=_text(meta, "uid"),
        node=_text(spec, "nodeName"),
        phase=_text(status, "phase"),
        reason=_text(status, "reason"),
        message=_text(status, "message"),
        created=_time(meta, "creationTimestamp"),
        started=_time(status, "startTime"),
        deleted=_time(meta, "deletionTimestamp"),
        labels=_words(meta, "labels"),
        annotations=_words(meta, "annotations"),
        owners=_owners(meta),
        containers=tuple(_containers(spec, status)),
        conditions=_conditions(status),
    )


def _containers(spec: Json, status: Json) -> Iterator[Container]:
    for of_spec, of_status, init in (
        ("initContainers", "initContainerStatuses", True),
        ("containers", "containerStatuses", False),
    ):
        told = {_text(one, "name"): one for one in _maps(status, of_status)}
        asked = {_text(one, "name"): one for one in _maps(spec, of_spec)}
        for name in dict.fromkeys((*asked, *told)):
            yield _container(name, asked.get(name, {}), told.get(name, {}), init)


def _container(name: str, spec: Json, status: Json, init: bool) -> Container:
    current = _map(status, "state")
    state = next((word for word in _STATES if isinstance(current.get(word), Mapping)), "")
    last = _map(_map(status, "lastState"), "terminated")
    waiting = _map(current, "waiting")
    return Container(
        name=name,
        init=init,
        image=_text(status, "image") or _text(spec, "image"),
        state=state,
        reason=_text(waiting, "reason"),
        message=_text(waiting, "message"),
        started=_time(_map(current, "running"), "startedAt"),
        ended=_ended(_map(current, "terminated")) if state == "terminated" else None,
        last=_ended(last) if last else None,
        restarts=_number(status, "restartCount") or 0,
        limits=_words(_map(spec, "resources"), "limits"),
        env=dict(_env(spec)),
        sidecar=init and _text(spec, "restartPolicy") == "Always",
    )


def _env(spec: Json) -> Iterator[tuple[str, str]]:
    for one in _maps(spec, "env"):
        name, value = _text(one, "name"), _text(one, "value")
        if name in _ENV and _ENV_VALUE.fullmatch(value):
            yield name, value


def _ended(raw: Json) -> Ended:
    return Ended(
        code=_number(raw, "exitCode"),
        signal=_number(raw, "signal") or None,
        reason=_text(raw, "reason"),
        message=_text(raw, "message"),
        started=_time(raw, "startedAt"),
        finished=_time(raw, "finishedAt"),
    )


def job(raw: Json, kind: str, group: str) -> Job:
    """A job of any kind: most say how they are by conditions, volcano by a phase."""
    meta, spec, status = _map(raw, "metadata"), _map(raw, "spec"), _map(raw, "status")
    conditions = _conditions(status)
    phase = _map(status, "state")
    state = _text(status, "terminalState") or _text(phase, "phase") or _state(conditions)
    said = next((c for c in reversed(conditions) if c.type == state), Condition(state))
    at = said.at or _time(phase, "lastTransitionTime")
    return Job(
        kind=kind,
        name=_text(meta, "name"),
        namespace=_text(meta, "namespace"),
        group=group,
        uid=_text(meta, "uid"),
        state=state,
        reason=said.reason or _text(phase, "reason"),
        message=said.message or _text(phase, "message"),
        created=_time(meta, "creationTimestamp"),
        started=_time(status, "startTime"),
        finished=_time(status, "completionTime") or (at if state in ENDED_WELL | ENDED_BADLY else None),
        restarts=_number(status, "restarts") or _number(status, "retryCount") or 0,
        labels=_words(meta, "labels"),
        owners=_owners(meta),
        conditions=conditions,
        alone=group == "batch"
        and _number(spec, "parallelism") in (None, 1)
        and _number(spec, "completions") in (None, 1),
    )


def _state(conditions: tuple[Condition, ...]) -> str:
    true = {c.type for c in conditions if c.status == "True"}
    return next((word for word in _TOLD if word in true), "")


def event(raw: Json) -> Event:
    about = _map(raw, "involvedObject") or _map(raw, "regarding")
    series = _map(raw, "series")
    first = _time(raw, "firstTimestamp") or _time(raw, "eventTime") or _time(_map(raw, "metadata"), "creationTimestamp")
    last = _time(series, "lastObservedTime") or _time(raw, "lastTimestamp") or first
    return Event(
        type=_text(raw, "type") or "Normal",
        reason=_text(raw, "reason"),
        message=_text(raw, "message") or _text(raw, "note"),
        source=_text(_map(raw, "source"), "component") or _text(raw, "reportingComponent"),
        first=first,
        last=last,
        count=_number(series, "count") or _number(raw, "count") or 1,
        kind=_text(about, "kind"),
        name=_text(about, "name"),
        uid=_text(about, "uid"),
    )


def node(raw: Json) -> Node:
    spec, status = _map(raw, "spec"), _map(raw, "status")
    have, own = _words(status, "allocatable"), _words(status, "capacity")
    gpus = [(_whole(have.get(name, "")), _whole(own[name])) for name in own if _GPU.search(name)]
    taints = ("".join(_taint(one)) for one in _maps(spec, "taints"))
    return Node(
        name=_text(_map(raw, "metadata"), "name"),
        conditions=_conditions(status),
        taints=tuple(taints),
        closed=spec.get("unschedulable") is True,
        gpus=(sum(a for a, _ in gpus), sum(b for _, b in gpus)) if gpus else None,
    )


def _taint(raw: Json) -> Iterator[str]:
    yield _text(raw, "key")
    if value := _text(raw, "value"):
        yield f"={value}"
    yield f":{_text(raw, 'effect')}"


def _conditions(status: Json) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=_text(one, "type") or _text(one, "status"),
            status=_text(one, "status") if _text(one, "type") else "True",
            reason=_text(one, "reason"),
            message=_text(one, "message"),
            at=_time(one, "lastTransitionTime"),
        )
        for one in _maps(status, "conditions")
    )


def _owners(meta: Json) -> tuple[Owner, ...]:
    found = (Owner(_text(one, "kind"), _text(one, "name"), _text(one, "uid")) for one in _maps(meta, "ownerReferences"))
    return tuple(found)


def _map(raw: Json, name: str) -> Json:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _maps(raw: Json, name: str) -> Iterator[Json]:
    found = raw.get(name)
    yield from (one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()


def _words(raw: Json, name: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in _map(raw, name).items()}


def _text(raw: Json, name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


def _number(raw: Json, name: str) -> int | None:
    found = raw.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _time(raw: Json, name: str) -> datetime | None:
    """None for the year 1 too, which is how Go writes that there is no time."""
    try:
        found = datetime.fromisoformat(_text(raw, name))
    except ValueError:
        return None
    return found if found.tzinfo is not None and 1970 <= found.year < 9999 else None
