"""The kinds of jobs that are known by name: where the API has them, and how their pods are labelled. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """words: by which kubectl and people call it; versions: of the API, newest first; labels: that name the job on its pods."""

    name: str
    group: str
    versions: tuple[str, ...]
    plural: str
    words: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def resource(self) -> str:
        """As kubectl takes it, whatever else is called a job on the cluster."""
        return f"{self.plural}.{self.group}"


_TRAINING = ("training.kubeflow.org/job-name",)

KINDS: tuple[Kind, ...] = (
    Kind("PyTorchJob", "kubeflow.org", ("v1",), "pytorchjobs", ("pytorchjob", "pytorchjobs"), (*_TRAINING, "pytorch-job-name")),
    Kind("MPIJob", "kubeflow.org", ("v2beta1", "v1"), "mpijobs", ("mpijob", "mpijobs"), (*_TRAINING, "mpi-job-name", "mpi_job_name")),
    Kind("JobSet", "jobset.x-k8s.io", ("v1alpha2",), "jobsets", ("jobset", "jobsets"), ("jobset.sigs.k8s.io/jobset-name",)),
    Kind("Job", "batch.volcano.sh", ("v1alpha1",), "jobs", ("vcjob", "vcjobs", "vj"), ("volcano.sh/job-name",)),
    Kind("Job", "batch", ("v1",), "jobs", ("job", "jobs"), ("batch.kubernetes.io/job-name", "job-name")),
)  # fmt: skip

NAME_LABELS = tuple(dict.fromkeys(label for kind in KINDS for label in kind.labels))
WORDS = {word: kind for kind in KINDS for word in (*kind.words, kind.resource)}


def kind_of(group: str, name: str) -> Kind | None:
    return next((kind for kind in KINDS if (kind.group, kind.name) == (group, name)), None)
