"""The cluster's API by Kubernetes' own Python client, by requests that read alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.errors import InputError, UsageError
from triage.kube import read
from triage.kube.kinds import Kind
from triage.kube.values import Job, Node, Pod
from triage.text import printable

CONNECT, ANSWER = 5.0, 30.0  # seconds
_PAGE = 500
MOST_PODS = 5_000
MOST_EVENTS = 20_000
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_CHUNK = 64 << 10


class Refused(Exception):  # noqa: N818 - often no error: what is not there, or not for us, is said and left out
    """What the server will not give. status: of HTTP; words: why, as it says."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words

    @property
    def absent(self) -> bool:
        return self.status == 404


@dataclass(frozen=True, slots=True)
class Found:
    """cut: there are more than are read."""

    items: tuple[Any, ...]
    cut: bool = False


class Cluster:
    """One context of a kubeconfig, or the cluster that this process runs in.

    Each call raises Refused for what the server will not give, InputError where it cannot be asked at all.
    """

    def __init__(self, context: str = "") -> None:
        """Errors: UsageError: the client is not installed, there is no such context, or nothing says where the cluster is."""
        try:
            from kubernetes import client
        except ImportError as error:
            raise UsageError(
                "the Kubernetes client is not installed", 'install it: pip install "hpc-triage[k8s]"'
            ) from error
        self._settings = client.Configuration()
        self.namespace = _load(self._settings, context)
        self._settings.retries = 1
        if not self._settings.verify_ssl:  # as the kubeconfig says; kubectl does not warn of it either
            import urllib3

            urllib3.disable_warnings()
        api = client.ApiClient(self._settings)
        self._core, self._custom = client.CoreV1Api(api), client.CustomObjectsApi(api)

    def pod(self, namespace: str, name: str) -> Pod:
        return read.pod(self._read(self._core.read_namespaced_pod, name, namespace))

    def pods(self, namespace: str, selector: str = "") -> Found:
        """selector: as kubectl -l takes it."""
        return self._list(self._core.list_namespaced_pod, namespace, read.pod, MOST_PODS, label_selector=selector)

    def job(self, kind: Kind, namespace: str, name: str) -> Job:
        """The first of the kind's versions that the cluster has."""
        for version in kind.versions[:-1]:
            try:
                return self._job(kind, version, namespace, name)
            except Refused as error:
                if not error.absent:
                    raise
        return self._job(kind, kind.versions[-1], namespace, name)

    def events(self, namespace: str, about: str = "") -> Found:
        """about: a field selector, such as involvedObject.kind=Node."""
        more = {"field_selector": about} if about else {}
        return self._list(self._core.list_namespaced_event, namespace, read.event, MOST_EVENTS, **more)

    def node(self, name: str) -> Node:
        return read.node(self._read(self._core.read_node, name))

    @contextmanager
    def log(self, namespace: str, pod: str, container: str, previous: bool) -> Iterator[Iterator[bytes]]:
        """The log in pieces as it comes. previous: of the run before. Each line begins with when it was written."""
        more = {"container": container, "previous": previous, "timestamps": True}
        with self._answer(self._core.read_namespaced_pod_log, pod, namespace, **more) as answer:
            yield _pieces(answer)

    def _job(self, kind: Kind, version: str, namespace: str, name: str) -> Job:
        where = (kind.group, version, namespace, kind.plural, name)
        return read.job(self._read(self._custom.get_namespaced_custom_object, *where), kind.name, kind.group)

    def _read(self, call: Callable[..., Any], *named: str, **more: Any) -> Mapping[str, Any]:
        with self._answer(call, *named, **more) as answer:
            try:
                found = json.loads(b"".join(_pieces(answer)))
            except ValueError as error:
                raise Refused(answer.status, "the answer is no JSON") from error
        if not isinstance(found, dict):
            raise Refused(answer.status, "the answer is no object")
        return found

    def _list(
        self, call: Callable[..., Any], namespace: str, parse: Callable[[Any], Any], most: int, **more: Any
    ) -> Found:
        """Page by page; where the server has forgotten how a list went on, what was read of it counts."""
        found: list[Any] = []
        page: dict[str, str] = {}
        while True:
            try:
                raw = self._read(call, namespace, limit=_PAGE, **more, **page)
            except Refused as error:
                if page and error.status == 410:
                    return Found(tuple(found), cut=True)
                raise
            items = raw.get("items")
            found += [parse(one) for one in items if isinstance(one, dict)] if isinstance(items, list) else []
            meta = raw.get("metadata")
            after = meta.get("continue") if isinstance(meta, dict) else None
            if not isinstance(after, str) or not after:
                return Found(tuple(found))
            if len(found) >= most:
                return Found(tuple(found), cut=True)
            page = {"_continue": after}

    def _answer(self, call: Callable[..., Any], *named: str, **more: Any) -> AbstractContextManager[Any]:
        return self._answering(call, named, more)

    @contextmanager
    def _answering(self, call: Callable[..., Any], named: tuple[str, ...], more: Mapping[str, Any]) -> Iterator[Any]:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            answer = call(*named, _preload_content=False, _request_timeout=(CONNECT, ANSWER), **more)
        except ApiException as error:
            if error.status == 401:
                raise InputError(
                    f"the cluster at {self._settings.host} does not know who asks (401 Unauthorized)",
                    "log in again, or choose another context with --context",
                ) from error
            if not error.status:
                raise self._unreachable(error) from error
            raise Refused(error.status, _why(error)) from error
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error
        try:
            yield answer
        except BaseException:
            answer.close()  # what was not read of it would be taken for the next answer
            raise
        finally:
            answer.release_conn()

    def _unreachable(self, error: Exception) -> InputError:
        host = str(self._settings.host)
        return InputError(
            f"the cluster at {host} cannot be asked: {_short(error)}",
            "see whether `kubectl get pods` works here, or give the logs as files",
        )


def _pieces(answer: Any) -> Iterator[bytes]:
    """Errors: Refused where it breaks off."""
    from urllib3.exceptions import HTTPError

    try:
        yield from answer.stream(_CHUNK, decode_content=True)
    except (HTTPError, OSError) as error:
        raise Refused(0, f"the answer broke off: {_short(error)}") from error


def _load(settings: Any, context: str) -> str:
    """Fills the client's settings; the namespace that is meant where none is named."""
    from kubernetes import config
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR

    named = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    there = any(Path(part).expanduser().exists() for part in named.split(ENV_KUBECONFIG_PATH_SEPARATOR) if part)
    try:
        if not there and not context:
            config.load_incluster_config(client_configuration=settings)
            return _own_namespace()
        known, active = config.list_kube_config_contexts(named)
        config.load_kube_config(named, context or None, settings, persist_config=False)
    except ConfigException as error:
        what = f"context {printable(context)!r} cannot be used" if context else "no cluster is known here"
        raise UsageError(
            f"{what}: {_short(error)}", "set KUBECONFIG, choose a --context, or run this in a pod of the cluster"
        ) from error
    except Exception as error:  # a damaged kubeconfig is met in many ways
        raise UsageError(f"{named} cannot be used: {_short(error)}", "see `kubectl config view`") from error
    chosen = next((one for one in known if one.get("name") == context), active) if context else active
    return str((chosen or {}).get("context", {}).get("namespace") or "default")


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text("utf-8").strip() or "default"
    except OSError:
        return "default"


def _why(error: Any) -> str:
    """The server's own words, in its Status object."""
    try:
        said = json.loads(error.body)["message"]
    except (TypeError, ValueError, KeyError):
        said = f"{error.status} {error.reason or ''}"  # not its body, which may be a page of a proxy
    return printable(" ".join(str(said).split())[:300])


def _short(error: Exception) -> str:
    """Of urllib3's nested errors the innermost reason."""
    inner: Any = error
    while isinstance(deeper := getattr(inner, "reason", None), Exception):
        inner = deeper
    words = " ".join(str(inner).split())
    return printable(words.rpartition(": ")[2][:200] if "Connection" in words else words[:200]) or type(inner).__name__
