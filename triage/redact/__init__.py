"""Secrets out of log text, before anything stores, shows or sends it; and personal data out of what a model reads.

Two ways to know a secret: it has the form of one (forms.py: a key with a known prefix, a JSON web token), or something
says that what follows is one (named.py: a name; sent.py: a header, an address, an option of a program).
"""

from triage.redact.blocks import LineRedactor, redact

__all__ = ["LineRedactor", "redact"]
