"""What the GPUs and NPUs of this node do. Standard library alone: this text also runs on other nodes.

Each way that gives no reading is told in words; what was not read is never 0 %.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from typing import Any

_FIELDS = ("index", "utilization.gpu", "power.draw", "clocks_throttle_reasons.active", "uuid")
# Bits that slow a GPU down against its will; its power cap (0x4) is none of them, as it is reached in every good run.
_THROTTLES = {0x8: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}
_TIME = 10.0  # seconds for one program
_NPU_ROW = re.compile(r"^\|\s*(\d{1,3})(?:\s+\d{1,3})?\s*\|\s*[0-9A-Fa-f]{2,8}:[0-9A-Fa-f:.]{4,12}\s*\|\s*(\d{1,3})\s")
_NPU_HEAD = re.compile(r"^\|\s*(\d{1,3})\s+(?:Ascend)?[\w.-]+\s*\|\s*(\w+)\s*\|\s*([\d.]+|-|NA)\s")
_METRIC = re.compile(r"^(\w{1,120})\{([^}]{0,4000})\}\s+([-+.\deE]{1,30}|NaN)", re.MULTILINE)
_LABEL = re.compile(r'(\w{1,60})="([^"]{0,200})"')
_DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": "util",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "active",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "throttle",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "throttle",
}
Reading = dict[str, Any]


class Absent(Exception):  # noqa: N818 - no error
    """Why there is no reading, in words."""


def read_devices(url: str = "", host: str = "") -> tuple[list[Reading], list[str]]:
    """Readings, and what gave none. url: of a DCGM exporter or another page of Prometheus; host: the only one of it to read.

    A reading: kind, index, util (%), power (W), throttled (words), pids; None where it was not told.
    """
    if url:
        try:
            return _prometheus(url, host), []
        except Absent as why:
            return [], [str(why)]
    absent: list[str] = []
    ways: tuple[tuple[Callable[[], list[Reading]], ...], ...] = ((_nvml, _nvidia_smi), (_rocm_smi,), (_npu_smi,))
    for kind in ways:
        for way in kind:
            try:
                if found := way():
                    return found, []
            except Absent as why:
                absent.append(str(why))
    return [], absent


# ------------------------------------------------------------------------------------------ NVIDIA
def _nvml() -> list[Reading]:
    try:
        import pynvml  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise Absent("nvidia-ml-py is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Absent(f"NVML: {error}") from None
    try:
        return [_nvml_device(pynvml, number) for number in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        raise Absent(f"NVML: {error}") from None
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _nvml_device(nvml: Any, number: int) -> Reading:
    def ask(name: str, pick: Callable[[Any], Any]) -> Any:
        try:
            return pick(getattr(nvml, name)(handle))
        except (nvml.NVMLError, AttributeError):
            return None

    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", int)
    return {
        "kind": "GPU",
        "index": str(number),
        "util": ask("nvmlDeviceGetUtilizationRates", lambda rates: float(rates.gpu)),
        "power": ask("nvmlDeviceGetPowerUsage", lambda milliwatts: milliwatts / 1000),
        "throttled": throttles(reasons),
        "pids": ask("nvmlDeviceGetComputeRunningProcesses", lambda found: [process.pid for process in found]),
    }


def _nvidia_smi() -> list[Reading]:
    out = _run(["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"])
    readings = nvidia_csv(out)
    if not readings:
        raise Absent(
            f"nvidia-smi lists no GPU: {' '.join(out.split())[:120]}" if out.strip() else "nvidia-smi lists no GPU"
        )
    with contextlib.suppress(Absent):
        apps = _run(["nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader,nounits"])
        used = [[cell.strip() for cell in line.split(",")] for line in apps.splitlines() if "," in line]
        for reading in readings:
            reading["pids"] = [int(row[1]) for row in used if row[0] == reading["uuid"] and row[1].isdecimal()]
    return readings


def nvidia_csv(text: str) -> list[Reading]:
    """Rows of `nvidia-smi --query-gpu --format=csv,noheader,nounits` with our fields."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(_FIELDS) and cells[0].isdecimal():
            reasons = int(cells[3], 16) if cells[3].lower().startswith("0x") else None
            found.append(
                {
                    "kind": "GPU",
                    "index": cells[0],
                    "util": _number(cells[1]),
                    "power": _number(cells[2]),
                    "throttled": throttles(reasons),
                    "uuid": cells[4],
                    "pids": None,
                }
            )
    return found


def throttles(reasons: int | None) -> str:
    return ", ".join(words for bit, words in _THROTTLES.items() if reasons is not None and reasons & bit)


# ------------------------------------------------------------------------------------------ AMD, Ascend, Prometheus
def _rocm_smi() -> list[Reading]:
    readings = rocm_json(_run(["rocm-smi", "--showuse", "--showpower", "--json"]))
    if not readings:
        raise Absent("rocm-smi lists no GPU")
    return readings


def rocm_json(text: str) -> list[Reading]:
    try:
        cards = json.loads(text[max(0, text.find("{")) :] or "{}")
    except ValueError:
        raise Absent("rocm-smi printed no JSON") from None
    found = []
    for name, values in cards.items() if isinstance(cards, dict) else ():
        if name.startswith("card") and isinstance(values, dict):
            told = {key.lower(): value for key, value in values.items()}
            power = next((value for key, value in told.items() if "power" in key and "(w)" in key), None)
            found.append(
                {
                    "kind": "GPU",
                    "index": name[4:],
                    "util": _number(told.get("gpu use (%)")),
                    "power": _number(power),
                    "throttled": "",
                    "pids": None,
                }
            )
    return found


def _npu_smi() -> list[Reading]:
    readings = npu_info(_run(["npu-smi", "info"]))
    if not readings:
        raise Absent("npu-smi lists no NPU")
    return readings


def npu_info(text: str) -> list[Reading]:
    """The table of `npu-smi info`: a row of the board (name, health, power), then one of its chip (bus, AICore %)."""
    found: list[Reading] = []
    board, health, power = "", "", None
    for line in text.splitlines():
        if row := _NPU_ROW.match(line):
            index = board if row[1] == "0" else f"{board}.{row[1]}"
            bad = "" if health in ("OK", "") else f"health {health}"
            found.append(
                {
                    "kind": "NPU",
                    "index": index,
                    "util": float(row[2]),
                    "power": power,
                    "throttled": bad,
                    "pids": None,
                }
            )
        elif head := _NPU_HEAD.match(line):
            board, health, power = head[1], head[2], _number(head[3])
    return found


def _prometheus(url: str, host: str) -> list[Reading]:
    if not url.startswith(("http://", "https://")):
        raise Absent(f"{url} is no http address")
    try:
        with urllib.request.urlopen(url, timeout=_TIME) as answer:  # noqa: S310 - checked above
            text = answer.read(8 << 20).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise Absent(f"{url}: {error}") from None
    readings = dcgm_metrics(text, host)
    if not readings:
        raise Absent(f"{url} has no metric of a GPU" + (f" of {host}" if host else ""))
    return readings


def dcgm_metrics(text: str, host: str = "") -> list[Reading]:
    """host: the only node to read, where the page tells nodes apart."""
    cards: dict[tuple[str, str], dict[str, float]] = {}
    for name, labels, value in _METRIC.findall(text):
        told = dict(_LABEL.findall(labels))
        node = told.get("Hostname") or told.get("hostname") or ""
        number = _number(value)
        if name in _DCGM and "gpu" in told and number is not None and (not host or not node or _same(node, host)):
            cards.setdefault((node, told["gpu"]), {})[_DCGM[name]] = number
    return [
        {
            "kind": "GPU",
            "index": gpu if host or not node else f"{gpu} of {node}",
            "util": values.get("util", values["active"] * 100 if "active" in values else None),
            "power": values.get("power"),
            "throttled": throttles(int(values.get("throttle", 0))),
            "pids": None,
        }
        for (node, gpu), values in sorted(cards.items())
    ]


def _same(a: str, b: str) -> bool:
    return a.split(".", 1)[0] == b.split(".", 1)[0]


def _number(text: Any) -> float | None:
    try:
        number = float(str(text).split()[0])
    except (ValueError, IndexError):
        return None
    return number if math.isfinite(number) else None


def _run(argv: list[str]) -> str:
    """What a program prints. One that hangs in a driver cannot even be killed: it is left behind, and that is told."""
    if shutil.which(argv[0]) is None:
        raise Absent(f"{argv[0]} is not on this node")
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError as error:
        raise Absent(f"{argv[0]}: {error}") from None
    try:
        out, _ = process.communicate(timeout=_TIME)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        raise Absent(f"{argv[0]} did not answer within {_TIME:g} s") from None
    if process.returncode:
        raise Absent(f"{argv[0]} ended with code {process.returncode}")
    return out.decode("utf-8", "replace")
