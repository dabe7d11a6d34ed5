import pytest

from triage.errors import UsageError
from triage.slurm import ids


@pytest.mark.parametrize(
    ("text", "asked"),
    [("123", "123"), (" 123 ", "123"), ("123_4", "123_4"), ("123_[1-4,7]", "123"), ("123_[1-9%2]", "123"), ("123+1", "123+1"),
     ("123.0", "123"), ("123.batch", "123"), ("123_4.extern", "123_4"), ("123+1.0", "123+1")],
)  # fmt: skip
def test_an_id_is_asked_for_by_its_job(text: str, asked: str) -> None:
    assert ids.parse(text).asked == asked


def test_an_id_is_written_as_it_was_given() -> None:
    assert [str(ids.parse(t)) for t in ("123_[1-4,7]", "123.batch", "12+1", "9_3")] == [
        "123_[1-4,7]",
        "123.batch",
        "12+1",
        "9_3",
    ]


@pytest.mark.parametrize(
    "text",
    ["", "job", "0", "-123", "123 ; reboot", "123;id", "$(id)", "123_", "123_a", "123+", "123.", "123.foo", "12345678901", "123_[1-]",
     "123\n124", "--help", "١٢٣"],
)  # fmt: skip
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no job id of Slurm"):
        ids.parse(text)


def test_tasks_of_a_list_are_told_from_the_others() -> None:
    asked = ids.parse("123_[1-4,7]")
    assert [task for task in ("0", "1", "4", "5", "7", "8-9") if asked.names(task)] == ["1", "4", "7"]
    assert ids.parse("123").names("8-9")
