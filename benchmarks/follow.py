"""What `triage compress --follow` needs while a log grows fast, and while it does not grow.

    python -m benchmarks.follow KIND MEGABYTES

KIND: of benchmarks.make_log. Prints: seconds of CPU and megabytes a second until it has caught up, resident memory after
an eighth and at the end, CPU while idle, bytes written.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IDLE = 10.0  # seconds


def memory(pid: int) -> int:
    """Resident, in MB."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) >> 10


def cpu(pid: int) -> float:
    """Seconds so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(kind: str, megabytes: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder, "job.log"), Path(folder, "small")
        log.touch()
        command = [sys.executable, "-m", "triage", "compress", "--follow", str(log), "--out", str(out)]
        triage = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(3)
        started, early = cpu(triage.pid), 0
        source = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.make_log", kind, megabytes], stdout=subprocess.PIPE
        )
        assert source.stdout is not None
        size = 0
        with log.open("ab", buffering=0) as stream:
            while piece := source.stdout.read(1 << 20):
                stream.write(piece)
                size += len(piece)
                if not early and size > int(megabytes) << 17:
                    time.sleep(2)
                    early = memory(triage.pid)
        used = -1.0
        while used != (used := cpu(triage.pid)):
            time.sleep(2)
        late = memory(triage.pid)
        before = cpu(triage.pid)
        time.sleep(IDLE)
        idle = cpu(triage.pid) - before
        triage.send_signal(2)
        triage.wait()
        print(
            f"{kind}: {size >> 20} MB, {used - started:.1f} s of CPU, {size / 1e6 / (used - started):.0f} MB/s; "
            f"memory {early} MB after an eighth, {late} MB at the end; idle {100 * idle / IDLE:.1f} % of a core; "
            f"{out.stat().st_size} bytes written"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
