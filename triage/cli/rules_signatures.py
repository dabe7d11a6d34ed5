"""`triage rules` where it is asked of learned signatures."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from triage.cli import output, rules_view, signatures_view
from triage.errors import StoreError, TriageError

if TYPE_CHECKING:
    from triage.cli.signatures import Asked
    from triage.store.signatures import SignatureStore


def show(name: str, chosen: str) -> None:
    """Everything that is known of a signature. chosen: text or json."""
    with opened() as store:
        found, history, incidents = store.get(name), store.history(name), store.incidents(name)
    if chosen == "json":
        output.write(rules_view.dump(signatures_view.document(found, history, incidents)))
    else:
        output.write(signatures_view.as_text(found, history, incidents, output.width()))


def learn(incident: int, asked: Asked, llm: str | None, by: str, chosen: str, quiet: bool) -> int:
    """The exit code: 0 a signature was learned or one covers the failure, 1 neither."""
    from triage.cli import signatures, wiring

    settings = wiring.settings(llm=llm)
    learnt = signatures.learn_from_outcome(incident, settings, by, output.teller(quiet), asked)
    output.clear_progress(quiet)
    for note in learnt.notes:
        output.note(note, quiet)
    if chosen == "json":
        output.write(rules_view.dump(signatures_view.learnt_json(learnt)))
    else:
        output.write("\n".join(signatures_view.told(learnt, settings.signature_confirmations)))
    return 0 if learnt.signature or learnt.covered else 1


def after_outcome(incident: int, llm: str | None, by: str, say: bool) -> dict[str, Any] | None:
    """What the outcome of an incident taught, as JSON; None, with a note, where that failed: the outcome is kept all the same.

    say: in words too, on stderr.
    """
    from triage.cli import signatures, wiring

    try:
        settings = wiring.settings(llm=llm)
        learnt = signatures.learn_from_outcome(incident, settings, by)
    except (TriageError, OSError) as error:
        output.note(f"nothing was learned from it: {error}")
        return None
    if say:
        nothing = learnt.covered and not learnt.moved
        said = [] if nothing else signatures_view.told(learnt, settings.signature_confirmations)
        if said and said[-1].startswith(signatures_view.NOTHING):
            said[-1] = f"the outcome is kept and counts; {said[-1]}"
        for line in (*learnt.notes, *said):
            output.note(line)
    return signatures_view.learnt_json(learnt)


def opened(url: str = "") -> SignatureStore:
    """The store at this URL, that of the settings without one. Candidates whose time is over are given up.

    Not by way of wiring, which loads the whole pipeline.
    """
    from triage import config
    from triage.store.signatures import SignatureStore

    store = SignatureStore.open(url or config.load().database_url)
    with contextlib.suppress(StoreError):  # one that can only be read is read
        store.expire()
    return store
