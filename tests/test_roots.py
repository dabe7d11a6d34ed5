"""A foreign model may read below the roots, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triage.errors import InputError, UsageError
from triage.roots import roots_of, within


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A root with a log, and a folder beside it with a secret, to which links lead."""
    root, other = tmp_path / "root", tmp_path / "root-other"
    (root / "ranks").mkdir(parents=True)
    other.mkdir()
    (root / "job.out").write_text("a\n")
    (other / "secret").write_text("b\n")
    return root, other


def test_files_and_folders_below_a_root_are_read(places: tuple[Path, Path]) -> None:
    root, _ = places
    roots = roots_of([str(root)])
    assert within(["job.out", str(root), "ranks/../job.out"], roots) == [
        str(root / "job.out"),
        str(root),
        str(root / "job.out"),
    ]


@pytest.mark.parametrize("name", ["../root-other/secret", "/etc/passwd", "ranks/../../root-other/secret", ".."])
def test_nothing_outside_is_read(places: tuple[Path, Path], name: str) -> None:
    with pytest.raises(InputError, match="outside of the roots"):
        within([name], roots_of([str(places[0])]))


@pytest.mark.parametrize("name", ["", "job.out\0", "job\x1b[2J.out", "x" * 5000])
def test_what_is_no_path_is_refused(places: tuple[Path, Path], name: str) -> None:
    with pytest.raises(InputError, match="is no path"):
        within([name], roots_of([str(places[0])]))


def test_no_link_leads_out(places: tuple[Path, Path]) -> None:
    root, other = places
    (root / "link").symlink_to(other / "secret")
    (root / "ranks" / "deep").symlink_to(other)
    roots = roots_of([str(root)])
    for name, words in (
        ("link", "outside"),
        ("ranks/deep/secret", "outside"),
        ("ranks", "leads outside"),
        (".", "leads"),
    ):
        with pytest.raises(InputError, match=words):
            within([name], roots)


def test_whether_a_file_outside_is_there_is_not_told(places: tuple[Path, Path]) -> None:
    root, other = places
    said = []
    for name in ("secret", "nothing"):
        with pytest.raises(InputError) as error:
            within([str(other / name)], roots_of([str(root)]))
        said.append(str(error.value).replace(name, "NAME"))
    assert said[0] == said[1]


def test_pipes_are_not_read(places: tuple[Path, Path]) -> None:
    os.mkfifo(places[0] / "pipe")
    with pytest.raises(InputError, match="no file or folder"):
        within(["pipe"], roots_of([str(places[0])]))


def test_a_root_must_be_a_folder(places: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        roots_of([str(places[0] / "job.out")])


@pytest.mark.parametrize("name", ["round", "nothing", "y" * 300, "job.out/below"])
def test_what_is_not_there_is_said_in_one_line(places: tuple[Path, Path], name: str) -> None:
    (places[0] / "round").symlink_to("round")
    with pytest.raises(InputError, match="is not there"):
        within([name], roots_of([str(places[0])]))


def test_a_folder_may_hold_a_link_that_goes_round(places: tuple[Path, Path]) -> None:
    (places[0] / "round").symlink_to("round")
    assert within(["."], roots_of([str(places[0])])) == [str(places[0])]
