"""Make real failures on this machine and keep each as a labelled case.

    python eval/inject/run.py --list
    python eval/inject/run.py NAME... | --all [--out eval/cases] [--venv DIR]

Root, Linux namespaces and a virtual environment with eval/inject/requirements.txt are needed; some faults also need a C
compiler, Open MPI or Slurm (slurm-wlm, munge, slurmdbd, mariadb-server). Each run has a sandbox of its own (sandbox.py) and
changes nothing outside --out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import cases
import faults  # noqa: F401  (registers)
import sandbox
from lab import FAULTS, Lab


def inside(name: str, venv: Path, out: Path) -> int:
    """In the namespaces: run the fault and write the case into `out`."""
    chosen = FAULTS[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that what was started is ended
    sandbox.enter(venv, out, chosen.host, chosen.shm)
    os.chdir("/")
    lab, here = Lab(), Path("/mnt/out")
    try:
        truth = chosen.run(lab)
    except Exception:
        shutil.copytree(sandbox.WORK, here / "run", ignore_dangling_symlinks=True)  # what it printed tells why
        raise
    finally:
        sandbox.kill_all()
    cases.write(cases.document(chosen, lab, truth, here), here)
    return 0


def make(name: str, venv: Path, out: Path, keep: bool) -> bool:
    """One case; True when it was written. A run whose label does not hold is kept aside, not shipped."""
    chosen, started = FAULTS[name], time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="case-"))
    command = [*sandbox.UNSHARE, sys.executable, __file__, "--inside", name, "--venv", str(venv), "--out", str(scratch)]
    done = subprocess.run(command, check=False)
    problems = [f"exit {done.returncode}"] if done.returncode else []
    if not problems:
        inputs = [p.name for p in scratch.iterdir() if p.name != "case.yaml"]
        problems = cases.leaks(scratch, inputs)
    took = f"{time.monotonic() - started:.0f} s"
    if problems:
        print(f"{chosen.case} {name}: NOT written ({took}), see {scratch}:", *problems[:8], sep="\n    ", flush=True)
        return False
    target = out / chosen.case
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(scratch, target)
    if not keep:
        shutil.rmtree(scratch)
    size = sum(p.stat().st_size for p in target.rglob("*") if p.is_file())
    print(f"{chosen.case} {name}: {size / 1000:.0f} kB, {took}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("eval/cases"))
    parser.add_argument(
        "--venv",
        type=Path,
        default=Path(os.environ.get("INJECT_VENV", sys.prefix)),
        help="has torch; default: this Python's",
    )
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        for name, f in sorted(FAULTS.items(), key=lambda item: item[1].case):
            print(f"{f.case}  {name:<28} {f.what}")
        return 0
    if args.inside:
        try:
            return inside(args.inside, args.venv, args.out)
        except Exception:  # the one place: the outer process reports it
            traceback.print_exc()
            return 1
    wanted = list(FAULTS) if args.all else args.names
    unknown = [n for n in wanted if n not in FAULTS]
    if unknown or not wanted:
        parser.error(
            f"no such fault: {', '.join(unknown)}; see --list" if unknown else "name faults, or --all; see --list"
        )
    if os.geteuid():
        parser.error("needs root: it makes namespaces and mounts")
    if not (args.venv / "pyvenv.cfg").exists():
        parser.error(f"{args.venv} is not a virtual environment; name one with torch by --venv or INJECT_VENV")
    args.out.mkdir(parents=True, exist_ok=True)
    made = [make(n, args.venv.resolve(), args.out.resolve(), keep=False) for n in wanted]
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
