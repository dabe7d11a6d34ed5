import json
import logging
import time
import urllib.error
import urllib.request

log = logging.getLogger("tracker")


class Tracker:
    """Send metrics to the experiment server; training goes on without it."""

    def __init__(self, url, config, rank, retries=3):
        self.url, self.retries, self.pending = url if rank == 0 else None, retries, []
        self.post("/api/runs", {"config": config})

    def log(self, step, metrics):
        self.post("/api/metrics", {"step": step, **metrics})

    def post(self, path, body):
        if not self.url:
            return
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        for attempt in range(1, self.retries + 1):
            try:
                urllib.request.urlopen(request, timeout=5).read()
                return
            except urllib.error.URLError as error:
                log.warning("POST %s%s failed (attempt %d/%d): %s", self.url, path, attempt, self.retries, error)
                time.sleep(0.2 * attempt)
        log.error("giving up on %s%s; metrics are kept locally", self.url, path)
        self.pending.append((path, body))

    def finish(self):
        if self.pending:
            log.warning("%d metric records were not delivered", len(self.pending))
