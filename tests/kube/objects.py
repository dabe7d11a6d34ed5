"""Objects as the API server writes them, with what a test says of them."""

from __future__ import annotations

import uuid
from typing import Any

BEGAN, ENDED = "2026-11-30T07:00:00Z", "2026-11-30T08:20:00Z"
Json = dict[str, Any]


def uid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def over(code: int, reason: str = "", started: str = BEGAN, finished: str = ENDED, **more: Any) -> Json:
    reason = reason or ("Error" if code else "Completed")
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished, "containerID": "containerd://1", **more}}  # fmt: skip


def running(started: str = BEGAN) -> Json:
    return {"running": {"startedAt": started}}


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def container(
    name: str = "main",
    state: Json | None = None,
    last: Json | None = None,
    restarts: int = 0,
    init: bool = False,
    **spec: Any,
) -> Json:
    """spec: of its specification, such as env or resources; what is no part of the API begins with _."""
    status = {"name": name, "state": running() if state is None else state, "lastState": last or {}, "restartCount": restarts, "image": "registry.example/train:1", "imageID": "", "ready": False}  # fmt: skip
    return {"_init": init, "_status": status, "name": name, "image": "registry.example/train:1", **spec}


def pod(
    name: str,
    *containers: Json,
    phase: str = "Failed",
    node: str = "gpu-1",
    labels: dict[str, str] | None = None,
    owner: Json | None = None,
    created: str = "2026-11-30T06:59:00Z",
    namespace: str = "ml",
    **status: Any,
) -> Json:
    own = containers or (container(state=over(1)),)
    spec = {
        "containers": [_spec(c) for c in own if not c["_init"]],
        "initContainers": [_spec(c) for c in own if c["_init"]],
    }
    meta: Json = {
        "name": name,
        "namespace": namespace,
        "uid": uid(f"{namespace}/{name}"),
        "creationTimestamp": created,
        "labels": labels or {},
    }
    if owner:
        owns = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}  # fmt: skip
        meta["ownerReferences"] = [owns]
    told = {"phase": phase, "startTime": created, "containerStatuses": [c["_status"] for c in own if not c["_init"]], "initContainerStatuses": [c["_status"] for c in own if c["_init"]], **status}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": spec | ({"nodeName": node} if node else {}),
        "status": told,
    }


def _spec(one: Json) -> Json:
    return {name: value for name, value in one.items() if not name.startswith("_")}


def job(
    kind: str,
    name: str,
    *conditions: Json,
    api: str = "kubeflow.org/v1",
    namespace: str = "ml",
    spec: Json | None = None,
    **status: Any,
) -> Json:
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": uid(f"{api} {namespace}/{name}"),
        "creationTimestamp": "2026-11-30T06:58:00Z",
    }
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": meta,
        "spec": spec or {},
        "status": {"conditions": list(conditions), **status},
    }


def batch_job(name: str, *conditions: Json, **more: Any) -> Json:
    return job("Job", name, *conditions, api="batch/v1", **more)


def condition(type_: str, status: str = "True", reason: str = "", message: str = "", at: str = ENDED) -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def event(
    about: Json,
    reason: str,
    message: str = "",
    *,
    warning: bool = True,
    at: str = ENDED,
    count: int = 1,
    source: str = "kubelet",
    namespace: str = "",
) -> Json:
    meta = about["metadata"]
    named = f"{meta['name']}.{uid(reason + message + at)[:16]}"
    space = namespace or meta.get("namespace") or "default"
    object_ = {
        "kind": about["kind"],
        "name": meta["name"],
        "uid": meta.get("uid", ""),
        "namespace": meta.get("namespace", ""),
    }
    told = {"type": "Warning" if warning else "Normal", "reason": reason, "message": message, "firstTimestamp": at, "lastTimestamp": at, "count": count, "source": {"component": source}}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": named, "namespace": space, "creationTimestamp": at}, "involvedObject": object_, **told}  # fmt: skip


def node(name: str, *conditions: Json, taints: list[Json] | None = None, gpus: tuple[int, int] | None = None) -> Json:
    status: Json = {"conditions": [condition("Ready", reason="KubeletReady"), *conditions] if not any(c["type"] == "Ready" for c in conditions) else list(conditions)}  # fmt: skip
    if gpus:
        status |= {"allocatable": {"nvidia.com/gpu": str(gpus[0])}, "capacity": {"nvidia.com/gpu": str(gpus[1])}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name},
        "spec": {"taints": taints or []},
        "status": status,
    }
