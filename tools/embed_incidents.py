"""Write triage/retrieve/model/passages.npz: `python tools/embed_incidents.py [--check]`.

It holds the vectors of all passages and titles of kb/incidents, so that no installation has to make them. --check compares the names of
the passages alone: another processor gives vectors that differ in the last places.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import triage.retrieve
from triage import kb
from triage.retrieve import prepared
from triage.retrieve.embedding import PREPARED, MiniLM, readable
from triage.retrieve.rank import passages

TARGET = Path(triage.retrieve.__file__).parent / "model" / PREPARED


def texts() -> list[str]:
    """Each passage once."""
    incidents = kb.known_incidents()
    return list(dict.fromkeys(readable(text) for i in incidents for text in (*passages(i), i.title)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where passages are others")
    wanted = texts()
    if parser.parse_args().check:
        return 0 if TARGET.is_file() and prepared.load(TARGET).keys() == set(map(prepared.key, wanted)) else 1
    vectors = MiniLM().compute(wanted)
    prepared.save(TARGET, {prepared.key(text): vector for text, vector in zip(wanted, vectors, strict=True)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
