"""The compressed log for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from triage.report.text import size_text
from triage.text import how_many, rank_ranges


def render_folded(document: dict[str, Any]) -> str:
    """The compressed log for reading: line number, text, how often; then the account."""
    out = []
    ends = {file["file"]: file["last_line"] for file in document["files"]}
    for name, lines in groupby(document["lines"], key=lambda line: line["file"]):
        if len(ends) > 1:
            out.append(f"== {name}")
        last = 0
        for line in lines:
            out += _gap(last, line["line"])
            out.append(_line(line))
            last = line["line"]
        out += _gap(last, ends.get(name, 0) + 1)
    return "\n".join([*out, "", *account_lines(document)]) + "\n"


def _gap(last: int, following: int) -> Iterator[str]:
    """What is between two lines that are shown."""
    if following > last + 1:
        yield f"{'':>9}  ... {lines_text(following - last - 1)}"


def _line(line: dict[str, Any]) -> str:
    ranks = line.get("ranks", [])
    marks = [f"x{line['repeats']:,}"] if line["repeats"] > 1 else []
    marks += [f"ranks {rank_ranges(ranks)}"] if marks and len(ranks) > 1 else []
    return f"{line['line']:>9}  {line['text']}" + (f"  ({', '.join(marks)})" if marks else "")


def account_lines(document: dict[str, Any]) -> list[str]:
    """What was kept and what each rule took."""
    c = document["compression"]
    out = [
        f"# {lines_text(c['lines_in'])}, {size_text(c['bytes_in'])} in; {lines_text(c['lines_kept'])}, "
        f"{size_text(c['bytes_kept'])} kept (about {c['tokens_kept']:,} tokens); {_share(c)} of bytes left out",
        f"# folded into another line: {c['folded']:,}"
        + (f"; cut to fit the budget: {c['cut']:,}" if "cut" in c else ""),
    ]
    if c.get("novel"):
        out.append(f"# kept as text of no repeating kind: {c['novel']:,}")
    shown = {line["file"] for line in document.get("lines", [])}
    silent = sum(file["file"] not in shown for file in document.get("files", []))
    if silent:
        out.append(
            f"# {how_many(silent, 'file')} of which nothing is shown: all routine, or folded into other files' lines"
        )
    out += [f"# {d['lines']:>10,} {d['rule']}" for d in c["dropped"]]
    out += [f"# {note}" for note in document["cut"]]
    return out + [f"# not seen: {note}" for note in document.get("missing", [])]


def _share(c: dict[str, Any]) -> str:
    """Never all of it when something was kept."""
    share = f"{100 * (1 - c['bytes_kept'] / c['bytes_in']) if c['bytes_in'] else 0.0:.1f} %"
    return "over 99.9 %" if share == "100.0 %" and c["bytes_kept"] else share


def lines_text(n: int) -> str:
    """ "1 line", "2,000 lines"."""
    return f"{n:,} {'line' if n == 1 else 'lines'}"
