"""On logs of real jobs, with all shipped rules: what is dropped is what the scan drops."""

from collections import Counter

import pytest

from triage import kb
from triage.compress.classify import Classifier
from triage.compress.engine import Scanner
from triage.compress.linekinds import LineKinds
from triage.compress.stream import Stream
from triage.evidence.match import Matcher
from triage.ingest.lines import LineParser
from triage.ingest.sources import discover
from triage.ingest.streams import chunks


def test_rules_take_what_they_take_in_the_scan(shared):
    rules, matcher = kb.filter_rules(), Matcher(kb.signatures())
    hot, patterns = matcher.hot_patterns(), matcher.patterns
    scanner, classifier = Scanner(rules, hot, signatures=patterns), Classifier(rules, hot, patterns)
    tried = 0
    for item in discover([str(shared / "logs")])[0]:
        if item.size > 300_000:
            continue
        data = b"".join(chunks(item, []))
        found = scanner.another(scanner.limits).scan(item.name, [data])
        dropped: Counter[str] = Counter()
        for run in found.runs:
            for template in run.templates:
                if template.rule:
                    dropped[template.rule] += template.count
        stream, kinds, parser, number = Stream(), LineKinds(classifier), LineParser(item.name), 0
        for lines, what in kinds.read([data]):
            for _ in stream.take(item.name, number + 1, lines, what, kinds.rule_ids, parser.parse_raw):
                pass
            number += len(lines)
        account = stream.account()
        assert (account.dropped, account.lines_in) == (dropped, found.lines_in), item.name
        tried += 1
    if not tried:
        pytest.skip("no logs")
    assert tried > 50
