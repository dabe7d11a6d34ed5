from __future__ import annotations

import pytest

from triage.errors import UsageError
from triage.kube.names import parse


@pytest.mark.parametrize(
    ("text", "namespace", "pod", "found"),
    [
        ("train", "", False, ("train", "", None)),
        ("ml/train", "", False, ("train", "ml", None)),
        ("pytorchjob/train", "", False, ("train", "", "PyTorchJob")),
        ("ml/PyTorchJob/train", "", False, ("train", "ml", "PyTorchJob")),
        ("jobs.batch.volcano.sh/train", "ml", False, ("train", "ml", "Job")),
        ("pod/train-0", "ml", True, ("train-0", "ml", None)),
        ("ml/train.0", "ml", True, ("train.0", "ml", None)),
        ("jobset/train", "", True, ("train", "jobset", None)),
    ],
)
def test_what_people_type(text: str, namespace: str, pod: bool, found: tuple[str, str, str | None]) -> None:
    asked = parse(text, namespace, pod=pod)
    assert (asked.name, asked.namespace, asked.kind.name if asked.kind else None) == found


@pytest.mark.parametrize(
    ("text", "namespace", "words"),
    [
        ("", "", "is no job"),
        ("-n", "", "is no job"),
        ("a/b/c", "", "is no job"),
        ("Train", "", "in small letters"),
        ("../train", "", "is no job"),
        ("train\x1b[2J", "", "is no job"),
        ("train", "a.b", "is no namespace"),
        ("ml/train", "dev", "two namespaces are given: ml and dev"),
    ],
)
def test_what_is_no_name(text: str, namespace: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text, namespace)
    assert words in str(raised.value) and "\x1b" not in str(raised.value)
