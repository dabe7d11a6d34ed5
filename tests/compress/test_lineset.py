from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compress.test_linewise import PATTERNS
from tests.examples import examples
from triage.compress.lineset import LineSet
from triage.compress.linewise import Confined

WORDY = (r"ab+", r"^hello \w+$", r"(?i)WORLD", r"hello|world", r"a\.b", r"é!", r"ß\d", r"\bhello\b.*world$")
_LINE = st.one_of(
    st.text(alphabet="abAB x\t_.-]^é█1ß!", max_size=8),
    st.lists(st.sampled_from(["hello", "world", "World", "ab", "x", "é!", "ß1", "ss1", "İ"]), max_size=4).map(" ".join),
)


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.sampled_from(PATTERNS + WORDY), min_size=1, max_size=40), st.lists(_LINE, max_size=40))
def test_a_batch_of_lines_is_matched_as_each_pattern_matches_each_line(patterns, lines):
    each = [Confined([pattern]) for pattern in patterns]
    assert LineSet(patterns).match(lines) == [[at for at, one in enumerate(each) if one.found(line)] for line in lines]


def test_no_patterns_and_no_lines():
    assert LineSet([]).match(["a"]) == [[]]
    assert LineSet(["a"]).match([]) == []


@settings(deadline=None)
@given(st.sampled_from(PATTERNS + WORDY), st.lists(_LINE, max_size=30))
def test_which_lines_match(pattern, lines):
    one = Confined([pattern])
    assert one.which(lines) == [at for at, line in enumerate(lines) if one.found(line)]
