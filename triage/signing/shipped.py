"""What triage itself knows of lines, for the verifier. Files of the knowledge base are read on call."""

from __future__ import annotations

from triage import kb
from triage.signing.verify import Banks, Verifier


def banks() -> Banks:
    """Without what was recorded here. Lines of a counter-example that some signature blames are not healthy."""
    signatures = kb.signatures()
    names = Verifier(Banks(signatures))
    spoken = (line for s in signatures for text in s.counter_examples for line in text.split("\n") if line.strip())
    harmless = (line for line in spoken if not any(s.role in ("root", "cascade") for s in names.knows(line)))
    routine = (example for rule in kb.filter_rules() for example in rule.examples)
    return Banks(signatures, kb.unrelated_lines(), (*routine, *harmless), kb.protected_lines())
