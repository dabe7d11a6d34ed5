"""Write the synthetic cases: `python eval/synth/build.py [s001 s002 ...] [--out FOLDER]`. The same bytes each time."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the package is `synth`, whoever runs this

from synth import kit  # noqa: E402


def load() -> None:
    """Import each module of cases, so that all are registered."""
    for module in pkgutil.iter_modules([str(HERE / "cases")]):
        importlib.import_module(f"synth.cases.{module.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--out", type=Path, default=HERE.parent / "cases")
    args = parser.parse_args()
    load()
    for name in args.ids or sorted(kit.REGISTRY):
        folder = args.out / name
        if folder.is_dir():
            shutil.rmtree(folder)
        kit.build(name).write(folder)


if __name__ == "__main__":
    main()
