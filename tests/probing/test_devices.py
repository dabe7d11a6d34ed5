"""Readings of GPUs and NPUs, as each tool prints them; what gives none is told in words."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from triage.probing import devices

NVIDIA = """\
0, 98, 612.41, 0x0000000000000000, GPU-1b2c
1, 0, 71.30, 0x0000000000000001, GPU-3d4e
2, 100, [N/A], 0x0000000000000048, GPU-5f60
3, [Not Supported], 88.10, 0x0000000000000004, GPU-7a8b
"""
ROCM = """\
{"card0": {"GPU use (%)": "97", "Average Graphics Package Power (W)": "450.0"},
 "card1": {"GPU use (%)": "0", "Average Graphics Package Power (W)": "90.0"},
 "system": {"Driver version": "6.7.0"}}
"""
NPU = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.rc3                 Version: 23.0.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.1        42                0    / 0             |
| 0                         | 0000:C1:00.0  | 87          0    / 0          30120/ 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Warning       | 88.4        55                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          30118/ 65536         |
+===========================+===============+====================================================+
"""
DCGM = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",modelName="H100",Hostname="n1"} 96
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",device="nvidia1",modelName="H100",Hostname="n1"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-3",device="nvidia0",modelName="H100",Hostname="n2.cluster"} 55
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",device="nvidia0",modelName="H100",Hostname="n1"} 610.5
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="1",UUID="GPU-2",Hostname="n1"} 64
DCGM_FI_DEV_GPU_UTIL{gpu="7",UUID="GPU-9",Hostname="n1"} NaN
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-2",Hostname="n1"} +Inf
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-1",Hostname="n1"} 1e999
"""


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs, beside the shell's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_nothing_is_told_as_absent_and_not_as_idle(bin_: Path) -> None:
    readings, absent = devices.read_devices()
    assert readings == []
    assert absent[-3:] == [
        "nvidia-smi is not on this node",
        "rocm-smi is not on this node",
        "npu-smi is not on this node",
    ]


def test_nvidia_smi(bin_: Path) -> None:
    (bin_ / "gpus").write_text(NVIDIA)
    program(
        bin_,
        "nvidia-smi",
        f'case "$1" in --query-gpu*) while read -r l; do echo "$l"; done < {bin_}/gpus;; *) echo "GPU-1b2c, 4711"; echo "GPU-3d4e, 4712";; esac',
    )
    readings, absent = devices.read_devices()
    assert absent == []
    assert [reading["util"] for reading in readings] == [98.0, 0.0, 100.0, None]
    assert [reading["power"] for reading in readings] == [612.41, 71.3, None, 88.1]
    assert [reading["pids"] for reading in readings] == [[4711], [4712], [], []]
    assert readings[2]["throttled"] == "hardware slowdown, hardware thermal"
    assert readings[3]["throttled"] == "", "the power cap is reached in every good run"


def test_rocm_smi(bin_: Path) -> None:
    (bin_ / "out").write_text(ROCM)
    program(bin_, "rocm-smi", f'echo "WARNING: low power"; while read -r l; do echo "$l"; done < {bin_}/out')
    readings, _ = devices.read_devices()
    assert [(r["kind"], r["index"], r["util"], r["power"]) for r in readings] == [
        ("GPU", "0", 97.0, 450.0),
        ("GPU", "1", 0.0, 90.0),
    ]


def test_npu_smi(bin_: Path) -> None:
    (bin_ / "out").write_text(NPU)
    program(bin_, "npu-smi", f'while read -r l; do echo "$l"; done < {bin_}/out')
    readings, _ = devices.read_devices()
    assert [(r["kind"], r["index"], r["util"], r["power"], r["throttled"]) for r in readings] == [
        ("NPU", "0", 87.0, 93.1, ""),
        ("NPU", "1", 0.0, 88.4, "health Warning"),
    ]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 9", "nvidia-smi ended with code 9"),
        ("echo No devices were found", "nvidia-smi lists no GPU: No devices were found"),
    ],
)
def test_a_tool_that_fails_is_told(bin_: Path, script: str, why: str) -> None:
    program(bin_, "nvidia-smi", script)
    assert why in devices.read_devices()[1]


def test_a_tool_that_hangs_holds_nobody(bin_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_TIME", 0.3)
    program(bin_, "nvidia-smi", "while :; do :; done")
    assert "nvidia-smi did not answer within 0.3 s" in devices.read_devices()[1]


@pytest.fixture
def exporter() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(DCGM.encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_dcgm_exporter_of_one_node(exporter: str) -> None:
    readings, absent = devices.read_devices(f"{exporter}/metrics", "n1.cluster")
    assert absent == []
    assert [(r["index"], r["util"], r["power"], r["throttled"]) for r in readings] == [
        ("0", 96.0, 610.5, ""),
        ("1", 0.0, None, "hardware thermal"),
    ]


def test_a_dcgm_exporter_of_many_nodes(exporter: str) -> None:
    readings, _ = devices.read_devices(f"{exporter}/metrics")
    assert [r["index"] for r in readings] == ["0 of n1", "1 of n1", "0 of n2.cluster"]


def test_an_exporter_that_does_not_answer(exporter: str) -> None:
    assert "HTTP Error 404" in devices.read_devices(f"{exporter}/other")[1][0]
    assert devices.read_devices("file:///etc/passwd")[1] == ["file:///etc/passwd is no http address"]
    assert devices.read_devices(f"{exporter}/metrics", "n9")[1] == [f"{exporter}/metrics has no metric of a GPU of n9"]
