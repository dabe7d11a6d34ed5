from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.programs import FakePrograms
from tests.web import serving
from tests.web.serving import LOST_GPU, Served


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """It may read below `logs` beside its home, finds programs of Slurm in `bin` and the cluster of `kubeconfig` there."""
    place = tmp_path_factory.mktemp("served")
    (place / "logs").mkdir()
    env = FakePrograms(place / "bin").env | {
        "TRIAGE_SERVE_ROOTS": str(place / "logs"),
        "TRIAGE_SERVE_NAMESPACES": "ml",
        "KUBECONFIG": str(place / "kubeconfig"),
    }
    found = serving.start(place / "home", TRIAGE_SERVE_UPLOAD_MB="2", TRIAGE_SERVE_RATE="60000", **env)
    try:
        yield found
    finally:
        serving.kill(found)


@pytest.fixture(scope="session")
def incident(served: Served) -> int:
    """Of the example that ships."""
    return served.diagnosed({path.name: path.read_bytes() for path in sorted(LOST_GPU.iterdir())})
