"""Data of others: a job trace for priors and weights, labelled logs and confirmed incidents as cases."""

from triage.evaluation.importers.acme import AcmeSummary, import_acme
from triage.evaluation.importers.incident import import_incident
from triage.evaluation.importers.labels import import_labels

__all__ = ["AcmeSummary", "import_acme", "import_incident", "import_labels"]
