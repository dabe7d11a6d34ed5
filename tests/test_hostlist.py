import pytest

from triage.hostlist import MOST_NODES, expand
from triage.text import host_list


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("nid[008-010,12],login1", ("nid008", "nid009", "nid010", "nid12", "login1")),
        ("rack[1-2]n[01-02]", ("rack1n01", "rack1n02", "rack2n01", "rack2n02")),
        ("n[1-2].cluster.org", ("n1.cluster.org", "n2.cluster.org")),
        ("a,b,a", ("a", "b")),
        ("gpu-[1,3]-x", ("gpu-1-x", "gpu-3-x")),
    ],
)  # fmt: skip
def test_lists_are_expanded(text: str, nodes: tuple[str, ...]) -> None:
    assert expand(text) == nodes


@pytest.mark.parametrize(
    "text",
    ["", "(null)", "None assigned", "n[1-", "n1]", "n[[1-2]]", "n[1-2;id]", "n[1-99999999999]", "$(id)", "n[]", "n 1"],
)
def test_what_is_no_list_names_no_node(text: str) -> None:
    assert expand(text) == ()


def test_a_list_without_end_is_cut() -> None:
    assert len(expand(f"n[{','.join(f'{n}00000-{n}99999' for n in range(1, 200))}]")) == MOST_NODES


def test_a_list_of_many_nodes_comes_back_as_it_was() -> None:
    nodes = expand("nid[000000-009999]")
    assert len(nodes) == 10_000
    assert host_list(nodes) == "nid[000000-009999]"
