"""A follower with few rules, which starts fast: python -m tests.following.child OUT FORMAT UNTIL_IDLE FILE..."""

import sys
from pathlib import Path

from tests.compress.seed import HOT, RULES, SIGNATURES
from triage.compress.classify import Classifier
from triage.compress.linekinds import LineKinds
from triage.following.follow import Follower, Pace
from triage.following.out import Written

PACE = Pace(busy=0.01, idle=0.02, silence=999, life=999, commit=0.05)


def main(out: str, chosen: str, until_idle: str, *files: str) -> None:
    written = Written(Path(out), chosen, files, lambda _text: None)
    follower = Follower(LineKinds(Classifier(RULES, HOT, SIGNATURES)), written, print, lambda: False, pace=PACE)
    follower.open(files, written.state)
    follower.run(float(until_idle))


if __name__ == "__main__":
    main(*sys.argv[1:])
