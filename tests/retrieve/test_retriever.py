"""Similar incidents: why they are, when there are none, and an index that follows the incidents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from triage import kb
from triage.domain import Diagnosis, Evidence, KnownIncident
from triage.errors import IndexBrokenError, IndexUnavailableError
from triage.retrieve.chroma import ChromaIndex
from triage.retrieve.embedding import MINILM, MiniLM
from triage.retrieve.index import MemoryIndex, Vector
from triage.retrieve.rank import MIN_SCORE, MIN_SCORE_ASKED, Query
from triage.retrieve.retriever import Retriever, open_retriever, query_of

CATEGORIES = {"nvlink-error": "infrastructure", "cuda-error": "infrastructure", "key-error": "script"}


def incident(name: str, **fields: object) -> KnownIncident:
    base = KnownIncident(
        name, "Org", "2024-01", name, "unknown", "unknown", (), f"symptoms of {name}", (), f"cause of {name}", ()
    )
    return replace(base, **fields)  # type: ignore[arg-type]


NVLINK = incident(
    "nvlink",
    title="NVLink faults on one machine",
    failure_type="nvlink-error",
    root_cause_class="hardware-failure",
    components=("nvlink", "gpu"),
    symptoms="Training dies in the backward pass; the kernel log names NVLink.",
    error_strings=("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",),
    root_cause="A cable of the NVSwitch tray was loose.",
    remediation=("Drained the node.", "Reseated the tray."),
    outcome="confirmed",
)
TOKENIZER = incident(
    "db:12",
    title="Tokenizer file was missing a key",
    failure_type="key-error",
    root_cause_class="config-error",
    symptoms="Preprocessing ends with a KeyError when the vocabulary is read.",
    root_cause="A hand-edited vocabulary.",
)
DATA = incident(
    "data", title="Corrupt shard", symptoms="A shard of the dataset cannot be decoded.", failure_type="key-error"
)


class CountingModel(MiniLM):
    """The shipped model, that keeps count of what it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.embedded += texts
        return super().embed(texts)


@pytest.fixture(scope="module")
def model() -> CountingModel:
    return CountingModel()


@pytest.fixture
def retriever(model: CountingModel) -> Retriever:
    return Retriever(MemoryIndex(), model, [NVLINK, TOKENIZER, DATA], CATEGORIES)


# ------------------------------------------------------------------------------------------------ ranking
def test_the_reasons_are_given_in_words(retriever: Retriever) -> None:
    query = Query(
        "The GPUs of one node lost their NVLink",
        failure_type="nvlink-error",
        root_cause_class="hardware-failure",
        components=("GPU",),
        error_strings=("[rank3]: RuntimeError: CUDA error: uncorrectable NVLink error detected during the  execution",),
    )
    (first,) = retriever.similar(query)
    assert first.incident == "nvlink" and first.title == NVLINK.title
    assert first.why == (
        "same failure type nvlink-error; same cause class hardware-failure; same component gpu; both mention "
        "`RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution`; similar text"
    )
    assert (first.outcome, first.remediation) == ("confirmed", NVLINK.remediation)
    assert MIN_SCORE <= first.score <= 1


def test_a_near_type_is_said_to_be_near_only(retriever: Retriever) -> None:
    query = Query("uncorrectable NVLink error in the backward pass of training", failure_type="cuda-error")
    (first,) = retriever.similar(query, min_score=MIN_SCORE_ASKED)
    assert first.incident == "nvlink"
    assert first.why.startswith("same category infrastructure; ") and "failure type" not in first.why


def test_what_a_failure_is_in_a_few_words_counts_beside_what_its_log_says(model: CountingModel) -> None:
    line = "[E ProcessGroupNCCL.cpp:474] WorkNCCL(SeqNum=7, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800700 ms"
    other_way = incident("order", title="A logging hook ran on the first rank alone", error_strings=(line,))
    other_size = incident("size", title="Two ranks sent and expected different sizes in one operation")
    retriever = Retriever(MemoryIndex(), model, [other_way, other_size], CATEGORIES)
    told = replace(
        Query(line, "collective-mismatch", error_strings=(line,)), title="ranks give a collective different sizes"
    )
    found = {title: retriever.titles(replace(told, title=title)) for title in (told.title, "")}
    assert found[told.title]["size"] > found[told.title]["order"]
    assert found[told.title]["size"] > found[""]["size"]
    score = {s.incident: s.score for s in retriever.similar(told, min_score=0)}
    without = {s.incident: s.score for s in retriever.similar(replace(told, title=""), min_score=0)}
    assert score["size"] - without["size"] > score["order"] - without["order"]


def test_each_title_is_embedded_once(model: CountingModel) -> None:
    twins = [incident(str(i), title="The same words") for i in range(9)]
    retriever = Retriever(MemoryIndex(), model, [NVLINK], CATEGORIES)
    retriever.titles(Query("x"), twins)
    before = len(model.embedded)
    assert set(retriever.titles(Query("y"), twins)) == set("012345678")
    assert model.embedded[before:] == ["y"]


def test_nothing_similar_gives_nothing(retriever: Retriever) -> None:
    for text in ("", "how to bake bread", "\x00\x01", "error", "12345"):
        assert retriever.similar(Query(text)) == (), text


def test_the_same_type_alone_is_not_similar(retriever: Retriever) -> None:
    assert retriever.similar(Query("something else entirely, about bread", failure_type="key-error")) == ()


def test_unknown_is_no_type_to_share(model: CountingModel) -> None:
    retriever = Retriever(MemoryIndex(), model, [incident("a"), incident("b")], CATEGORIES)
    found = retriever.similar(Query("bread", failure_type="unknown", root_cause_class="unknown"), min_score=0)
    assert len(found) == 2
    assert all("same" not in similar.why and similar.score < 0.1 for similar in found)


def test_an_error_string_is_found_whatever_its_numbers(model: CountingModel) -> None:
    known = incident("ib", error_strings=("Got completion with error 12, opcode 1, len 32478, vendor err 129",))
    retriever = Retriever(MemoryIndex(), model, [known, NVLINK, DATA], CATEGORIES)
    (first,) = retriever.similar(
        Query("NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 91523, vendor err 129")
    )
    assert first.incident == "ib" and "both mention `Got completion with error 12" in first.why


def test_a_short_error_string_proves_nothing(model: CountingModel) -> None:
    retriever = Retriever(MemoryIndex(), model, [incident("oom", error_strings=("Killed",)), NVLINK], CATEGORIES)
    assert not any("both mention" in s.why for s in retriever.similar(Query("Killed by the baker"), min_score=0))


def test_an_error_string_that_many_share_says_less(model: CountingModel) -> None:
    rare, common = "RuntimeError: the tray is loose", "RuntimeError: the shop is shut"
    known = [incident(f"i{n}", error_strings=(common,)) for n in range(8)] + [
        incident("one", error_strings=(rare, common))
    ]
    retriever = Retriever(MemoryIndex(), model, known, CATEGORIES)
    scores = {
        s.incident: s.score
        for s in retriever.similar(Query("", error_strings=(rare, common)), 9, dense=False, min_score=0)
    }
    assert scores["one"] > scores["i0"] + 0.2


def test_k_bounds_the_answer_and_ties_have_an_order(model: CountingModel) -> None:
    known = [incident(f"i{n}", title="same", symptoms="same words", root_cause="same") for n in (3, 1, 2)]
    retriever = Retriever(MemoryIndex(), model, known, CATEGORIES)
    assert [s.incident for s in retriever.similar(Query("same words"), 2, min_score=0)] == ["i1", "i2"]
    assert retriever.similar(Query("same words"), 0) == ()
    assert Retriever(MemoryIndex(), model, [], {}).similar(Query("same words")) == ()


def test_the_same_words_of_another_type_count_less(model: CountingModel) -> None:
    """Launchers and other ranks print the same after every cause."""
    retriever = Retriever(MemoryIndex(), model, [NVLINK, TOKENIZER, DATA], CATEGORIES, vague=["nccl-timeout"])
    text = "training dies in the backward pass, the kernel log names NVLink"

    def score(failure_type: str) -> float:
        found = {s.incident: s.score for s in retriever.similar(Query(text, failure_type), min_score=0)}
        return found["nvlink"]

    assert score("nvlink-error") > score("") > score("cuda-error") > score("key-error")
    assert score("nccl-timeout") == score(""), "a symptom rules no cause out"


def test_lines_that_followed_are_looked_through_for_error_strings_alone(retriever: Retriever) -> None:
    line = "what(): RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution"
    (first,) = retriever.similar(Query("", "nvlink-error", consequences=(line,)))
    assert first.why.startswith("same failure type nvlink-error; both mention `RuntimeError: CUDA error")
    words = Query("", consequences=("The kernel log names NVLink in the backward pass of training",))
    assert retriever.similar(words, min_score=0.01) == ()


def cite(number: int, role: str, text: str) -> Evidence:
    return Evidence(f"E{number}", "job.log", number, text, role, "nvlink-error", title=f"title {role}")  # type: ignore[arg-type]


@pytest.mark.parametrize("roots", [True, False])
def test_the_question_of_a_diagnosis(roots: bool) -> None:
    """Of the lines, those of the cause and of a failure beside it; where none is known, all."""
    evidence = [cite(1, "context", "seen"), cite(2, "cascade", "later"), cite(5, "benign", "harmless")]
    if roots:
        evidence += [cite(3, "root", "first"), cite(4, "root", "first")]
    diagnosis = Diagnosis(
        "failed",
        "nvlink-error",
        "infrastructure",
        "hardware-failure",
        "supported",
        "A link failed (job.log:3).",
        "restart-excluding",
        evidence=tuple(evidence),
    )
    query = query_of(diagnosis)
    assert (query.failure_type, query.root_cause_class) == ("nvlink-error", "hardware-failure")
    if roots:
        assert query.text == "A link failed ().\ntitle root\ntitle context"
        assert (query.error_strings, query.consequences) == (("first", "seen"), ("later", "harmless"))
    else:
        assert query.text == "A link failed (job.log:3).\ntitle context\ntitle cascade"
        assert (query.error_strings, query.consequences) == (("seen", "later"), ("harmless",))


# ------------------------------------------------------------------------------------------------ the index follows
def test_only_new_and_changed_incidents_are_embedded(model: CountingModel, tmp_path: Path) -> None:
    def begin(*known: KnownIncident) -> int:
        model.embedded.clear()
        retriever = Retriever(ChromaIndex(model.name, model.dimension, folder=tmp_path), model, known, CATEGORIES)
        return retriever.sync()

    assert begin(NVLINK, TOKENIZER) == len(model.embedded) == 5
    assert begin(NVLINK, TOKENIZER) == len(model.embedded) == 0
    assert begin(NVLINK, TOKENIZER, DATA) == len(model.embedded) == 2
    assert begin(NVLINK, replace(TOKENIZER, root_cause="A vocabulary of another model.")) == 2
    assert begin(NVLINK, replace(TOKENIZER, outcome="rejected")) == 0, "an outcome is not embedded"


def test_an_incident_that_says_the_same_twice_is_indexed_once(model: CountingModel, tmp_path: Path) -> None:
    index = ChromaIndex(model.name, model.dimension, folder=tmp_path)
    twice = incident("twice", title="T", symptoms="the same", root_cause="the same")
    assert Retriever(index, model, [twice, incident("bare", title="", symptoms="", root_cause="")]).sync() == 2


def test_entries_of_others_are_passed_over_and_left_alone(model: CountingModel, tmp_path: Path) -> None:
    index = ChromaIndex(model.name, model.dimension, folder=tmp_path)
    Retriever(index, model, [NVLINK, TOKENIZER], CATEGORIES).sync()
    other = Retriever(index, model, [DATA], CATEGORIES)
    found = other.similar(Query("A shard of the dataset cannot be decoded"), min_score=0)
    assert [similar.incident for similar in found] == ["data"]
    assert index.count() == 7


def test_incidents_may_be_added_to_a_retriever_in_use(retriever: Retriever) -> None:
    question = Query("the cooling pump of rack 7 stopped and GPUs throttled")
    assert retriever.similar(question) == ()
    retriever.add([incident("db:99", title="Cooling pump stopped", symptoms="GPUs of a rack throttle.")])
    assert [similar.incident for similar in retriever.similar(question)] == ["db:99"]


def test_a_damaged_index_is_built_anew_on_the_way(model: CountingModel, tmp_path: Path) -> None:
    index = ChromaIndex(model.name, model.dimension, folder=tmp_path)
    Retriever(index, model, [NVLINK], CATEGORIES).sync()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(IndexBrokenError):
        index.count()
    retriever = Retriever(index, model, [NVLINK], CATEGORIES)
    assert [s.incident for s in retriever.similar(Query("NVLink fault in the backward pass"), min_score=0)] == [
        "nvlink"
    ]
    assert index.count() == 3


def test_without_an_index_words_and_structure_still_answer(model: CountingModel, tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file stands where the folder should be")
    index = ChromaIndex(model.name, model.dimension, folder=tmp_path / "index")
    retriever = Retriever(index, model, [NVLINK, TOKENIZER], CATEGORIES)
    query = Query("NVLink error in the backward pass", failure_type="nvlink-error")
    with pytest.raises(IndexUnavailableError):
        retriever.similar(query)
    (first,) = retriever.similar(query, dense=False)
    assert first.incident == "nvlink" and "similar text" not in first.why


def test_opening_one_touches_nothing(tmp_path: Path) -> None:
    open_retriever(tmp_path / "home", "", MINILM, kb.known_incidents())
    open_retriever(tmp_path / "home", "http://far.invalid:8000", MINILM, kb.known_incidents())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["http://far.invalid:8000", "http://127.0.0.1:9"])
def test_offline_asks_no_server(tmp_path: Path, url: str) -> None:
    retriever = open_retriever(tmp_path, url, MINILM, [NVLINK], offline=True)
    assert retriever.sync() == 3
    assert (tmp_path / "index" / "chroma").is_dir()
