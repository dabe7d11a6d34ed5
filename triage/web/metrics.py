"""What the server counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
_LONG = (0.5, 1, 2, 5, 10, 30, 60, 300, 1800)


class Metrics:
    """One server's; labels hold no path or name that a client gave."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "triage_http_requests", "Requests answered", ("method", "route", "code"), registry=self.registry
        )
        self.seconds = Histogram(
            "triage_http_request_seconds",
            "Until the answer was whole",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.queue = Gauge("triage_jobs", "Diagnoses by state", ("state",), registry=self.registry)
        self.diagnoses = Counter(
            "triage_diagnoses", "Diagnoses made", ("failure_type", "outcome"), registry=self.registry
        )
        self.failed = Counter("triage_diagnoses_failed", "Diagnoses that could not be made", registry=self.registry)
        self.diagnose_seconds = Histogram(
            "triage_diagnosis_seconds", "Of one diagnosis, without waiting", buckets=_LONG, registry=self.registry
        )
        self.received = Counter("triage_upload_bytes", "Bytes of logs received", registry=self.registry)

    def page(self) -> bytes:
        return generate_latest(self.registry)
