from __future__ import annotations

import gzip
import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from triage.errors import InputError
from triage.evaluation import cases, neutral
from triage.evaluation.importers import import_acme, import_incident, import_labels
from triage.evaluation.importers.acme import size_class
from triage.evaluation.importers.folder import neutral_names

SEREN = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
    "fail_time,stop_time,duration,queue,gpu_time\n"
)


def seren(gpus: int | str, state: str, hours: float = 1, kind: str = "SFT") -> str:
    """A job that starts at midnight; its gpu_time is right."""
    seconds = int(hours * 3600)
    end = f"2023-04-0{1 + seconds // 86400} {seconds % 86400 // 3600:02}:{seconds % 3600 // 60:02}:00+08:00"
    cost = seconds * int(gpus) if str(gpus).isdigit() else ""
    return f"1,u1,1,{gpus},128,{kind},{state},2023-04-01 00:00:00+08:00,2023-04-01 00:00:00+08:00,{end},{seconds},0,{cost}\n"


def trace(tmp_path: Path, text: str, header: str = SEREN) -> Path:
    (tmp_path / "trace.csv").write_text(header + text)
    return tmp_path / "trace.csv"


# ------------------------------------------------------------------------------------------------ job traces
def test_shares_costs_and_weights_of_a_trace(tmp_path: Path) -> None:
    """Failed: 8 GPUs for 1 h, 8 GPUs for 3 h (timeout), 512 GPUs for half an hour (node): 8 + 24 + 256 GPU-hours."""
    rows = [
        seren(8, "COMPLETED", 2), seren(8, "FAILED", 1), seren(8, "TIMEOUT", 3), seren(512, "NODE_FAIL", 0.5, "Pretrain"),
        seren(1, "CANCELLED", 10), seren(0, "FAILED", 5), seren(0, "COMPLETED", 5), seren(8, "COMPLETED", 0),
    ]  # fmt: skip
    found = import_acme(trace(tmp_path, "".join(rows)))
    out = found.as_json()
    assert (out["rows"], out["gpu_jobs"], out["skipped"]) == (8, 6, 0)
    assert out["states"]["FAILED"] == {"jobs": 2, "share": 0.25}
    assert out["total"] == {
        "jobs": 6, "failed": 3, "failure_share": 0.5, "gpu_hours": 16 + 8 + 24 + 256 + 10, "gpu_hours_lost": 288, "lost_per_failure": 96,
    }  # fmt: skip
    assert list(out["sizes"]) == ["1", "2-8", "65-512"]
    assert (out["sizes"]["2-8"]["failure_share"], out["sizes"]["2-8"]["gpu_hours_lost"]) == (0.5, 32)
    assert list(out["types"]) == ["Pretrain", "SFT"]
    assert found.weights() == {"2-8": 16.0, "65-512": 256.0}
    assert (found.gpu_hours(4), found.gpu_hours(100), found.gpu_hours(1), found.gpu_hours(4096)) == (16.0, 256.0, None, None)  # fmt: skip
    assert max(map(len, found.as_text().split("\n"))) <= 80 and "65-512" in found.as_text()
    json.dumps(out, allow_nan=False)


@pytest.mark.parametrize(
    ("gpus", "name"),
    [(1, "1"), (2, "2-8"), (8, "2-8"), (9, "9-64"), (64, "9-64"), (65, "65-512"), (512, "65-512"), (513, "513+")],
)
def test_size_classes(gpus: int, name: str) -> None:
    assert size_class(gpus) == name


def test_a_duration_that_counts_the_queue_is_not_believed(tmp_path: Path) -> None:
    """The Kalos columns: 8 s of run behind 10 s of queue, of which gpu_time makes 18 s on 64 GPUs."""
    row = "d1,u1,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
    found = import_acme(trace(tmp_path, row, KALOS))
    assert found.total.lost == pytest.approx(8 * 64 / 3600)
    assert found.padded == 1 and "gpu_time counts the queue in 1 rows" in found.as_text()


def test_gpu_time_then_duration_stand_in_for_missing_times(tmp_path: Path) -> None:
    rows = "j,u,1,8,1,Other,FAILED,,,,3600,0,28800\nj,u,1,8,1,Other,FAILED,,,,3600,0,\nj,u,1,8,1,Other,FAILED,,,,,,\n"
    found = import_acme(trace(tmp_path, rows))
    assert (found.rows, found.skipped, dict(found.timed_by)) == (2, 1, {"gpu_time": 1, "duration": 1})
    assert found.total.lost == pytest.approx(16)
    assert found.problems == ["line 4: no run time"]


def test_rows_that_make_no_sense_are_counted_and_named(tmp_path: Path) -> None:
    rows = [
        seren("many", "FAILED"),
        seren(8, ""),
        "torn",
        seren(8, "FAILED"),
        seren(2.5, "FAILED"),
        seren(8, "RUNNING"),
    ]
    found = import_acme(trace(tmp_path, "".join(rows).replace("torn", "torn\n")))
    assert (found.rows, found.gpu_jobs, found.skipped, found.total.jobs) == (2, 2, 4, 1)
    assert found.problems == ["line 2: gpu_num is 'many'", "line 3: no state", "line 4: no state"]
    assert "warning: 4 rows left out" in found.as_text()


def test_a_compressed_trace_is_read_as_it_is(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "trace.csv.gz", "wt", encoding="utf-8-sig") as stream:
        stream.write(SEREN + seren(8, "FAILED"))
    assert import_acme(tmp_path / "trace.csv.gz").total.failed == 1


@pytest.mark.parametrize(
    ("header", "text", "words"),
    [
        ("a,b\n", "1,2\n", "lacks the columns gpu_num; state; start_time and end_time (or gpu_time, or duration)"),
        ("gpu_num,state\n", "8,FAILED\n", "lacks the columns start_time and end_time"),
        (SEREN, "", "no sound row among 0"),
        (SEREN, "x\n", "no sound row among 1: line 2: no state"),
        ("", "", "trace.csv: is empty"),
        ("\x00\x01binary", "", "lacks the column"),
    ],
)
def test_what_is_no_trace_says_why(tmp_path: Path, header: str, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        import_acme(trace(tmp_path, text, header))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_trace_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: no such file"):
        import_acme(tmp_path / "none.csv")


# ------------------------------------------------------------------------------------------------ labelled logs
@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "job7" / "nodes").mkdir(parents=True)
    (folder / "oom_run.log").write_text("step 1\nCUDA out of memory\nbye\n")
    with gzip.open(folder / "ok.log.gz", "wb") as stream:
        stream.write(b"done\n" * 5)
    (folder / "job7" / "nodes" / "rank_0.log").write_text("a\nb\n")
    (folder / "job7" / "nodes" / "rank_1_crash.log").write_text("a\nboom\n")
    return folder


def labels(tmp_path: Path, logs: Path, text: str) -> list[Path]:
    (tmp_path / "labels.csv").write_text(text)
    return import_labels(tmp_path / "labels.csv", logs, tmp_path / "cases")


def test_rows_become_cases_under_neutral_names(tmp_path: Path, logs: Path) -> None:
    made = labels(
        tmp_path,
        logs,
        "file,failure_type,outcome,evidence,node,rank,action,also_accept,gpu_hours,_own,notes\n"
        "oom_run.log,out-of-memory,failed,2;1-3,gpu-2;gpu-3,3,fix-and-resubmit;restart,runtime-error,12.5,x,y\n"
        "ok.log.gz,healthy,healthy,,-,,,,,,\n"
        'job7,native-crash,failed,"rank_1_crash.log:2; nodes/rank_0.log:1-2",,,,,,,\n',
    )
    one, two, three = (cases.load_case(place) for place in made)
    assert [c.warnings for c in (one, two, three)] == [(), (), ()]
    assert [p.name for p in made] == [c.id for c in (one, two, three)] and all(c.id[1:].isdigit() for c in (one, two, three))  # fmt: skip
    assert one.expect.to_json() == {
        "outcome": "failed", "failure_type": "out-of-memory", "also_accept": ["runtime-error"], "evidence": [["job.log", 2, 2], ["job.log", 1, 3]],
        "nodes": ["gpu-2", "gpu-3"], "ranks": [3], "action": ["fix-and-resubmit", "restart"],
    }  # fmt: skip
    assert (one.gpu_hours, one.split, one.source, one.inputs) == (12.5, "dev", "imported from labels.csv", ("job.log",))
    assert two.inputs == ("job.log.gz",) and two.expect.to_json() == {
        "outcome": "healthy", "failure_type": "healthy", "nodes": [],
    }  # fmt: skip
    assert [name for name, _ in three.files()] == ["rank_0.log", "rank_1.log"]
    assert three.expect.to_json()["evidence"] == [["rank_1.log", 2, 2], ["rank_0.log", 1, 2]]
    assert "oom" not in "".join(p.read_text() for p in made[0].iterdir() if p.name != "job.log").replace("out-of-memory", "")  # fmt: skip


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/oom.log.gz"], ["job.log.gz"]),
        (["run/a/rank_0.out", "run/a/rank_1.out"], ["rank_0.out", "rank_1.out"]),
        (["run/gpu-1/0.err", "run/gpu-2/0.err"], ["gpu-1/0.err", "gpu-2/0.err"]),
        (["rank_3_oom.log", "rank-3.log", "rank_3.log"], ["rank_3.log", "rank-3.log", "rank_3_2.log"]),
        (["out-of-memory/a.log", "hang/a.log"], ["part/a.log", "part/a_2.log"]),
        (["gpu-042.dmesg", "ecc.dmesg.xz", "slurm.crash"], ["gpu-042.dmesg", "part.dmesg.xz", "slurm.log"]),
        (["case.yaml", "nodeFailure7.txt"], ["case.log", "part.txt"]),
    ],
)  # fmt: skip
def test_names_keep_ranks_and_nodes_and_lose_the_answer(paths: list[str], names: list[str]) -> None:
    found = neutral_names([PurePosixPath(p) for p in paths])
    assert list(found.values()) == names and neutral.warnings("", names) == ()


def test_importing_again_changes_nothing_and_other_labels_are_refused(tmp_path: Path, logs: Path) -> None:
    head = "file,failure_type,outcome\n"
    first = labels(tmp_path, logs, f"{head}oom_run.log,out-of-memory,failed\n")
    assert labels(tmp_path, logs, f"{head}oom_run.log,out-of-memory,failed\nok.log.gz,healthy,healthy\n")[0] == first[0]
    with pytest.raises(InputError, match=r"labels\.csv:2: .* holds this log with other labels; remove that folder"):
        labels(tmp_path, logs, f"{head}oom_run.log,cuda-error,failed\n")


@pytest.mark.parametrize("text", ["file;failure_type;outcome\noom_run.log;out-of-memory;failed\n", "\ufefffile\tFailure_Type\toutcome\r\noom_run.log\tout-of-memory\tfailed\r\n"])  # fmt: skip
def test_other_separators_and_line_ends(tmp_path: Path, logs: Path, text: str) -> None:
    assert len(labels(tmp_path, logs, text)) == 1


H = "file,failure_type,outcome,evidence"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{H}\noom_run.log,oom,failed,\n",
            "labels.csv:2: failure_type: 'oom' is not known, did you mean out-of-memory?",
        ),
        (f"{H}\noom_run.log,out-of-memroy,failed,\n", "did you mean out-of-memory?"),
        (f"{H}\noom_run.log,out-of-memory,,\n", "labels.csv:2: outcome is empty"),
        (f"{H}\nok.log.gz,healthy,healthy,\ngone.log,healthy,healthy,\n", "labels.csv:3: there is no"),
        (f"{H}\n../labels.csv,healthy,healthy,\n", "lies outside"),
        (f"{H}\n,healthy,healthy,\n", "file is empty"),
        (f"{H}\noom_run.log,out-of-memory,failed,2-9\n", "evidence ends in line 9, the log has 3"),
        (f"{H}\noom_run.log,out-of-memory,failed,3-2\n", "evidence '3-2' is no range of lines"),
        (f"{H}\noom_run.log,out-of-memory,failed,0\n", "evidence '0' is no range of lines"),
        (f"{H}\noom_run.log,out-of-memory,failed,line two\n", "evidence 'line two' is no range of lines"),
        (f"{H}\njob7,native-crash,failed,2\n", "evidence does not say in which file"),
        (f"{H}\njob7,native-crash,failed,rank_9.log:2\n", "evidence names 'rank_9.log', which is no file of this job"),
        (f"{H}\noom_run.log,out-of-memory,failed,\noom_run.log,healthy,healthy,\n", "labels.csv:3: the same log as"),
        (f"{H},rank\noom_run.log,out-of-memory,failed,,three\n", "rank 'three' is no whole number"),
        (f"{H},gpu_hours\noom_run.log,out-of-memory,failed,,-1\n", "gpu_hours '-1' is no number"),
        (f"{H},tags\noom_run.log,out-of-memory,failed,,misleading;odd\n", "tags: 'odd' is none of the 24 known"),
        (f"{H},acton\n", "unknown column 'acton'; did you mean action?"),
        (f"{H},rank,ranks\n", "the column ranks stands twice"),
        ("file,outcome\n", "lacks the column failure_type"),
        (f"{H}\n", "no rows"),
        (f"{H}\noom_run.log,out-of-memory,failed,,x\n", "more cells than columns"),
    ],
)
def test_bad_tables_say_where_and_write_nothing(tmp_path: Path, logs: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        labels(tmp_path, logs, text)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "cases").exists()


# ------------------------------------------------------------------------------------------------ incidents
def diagnosis(**fields: Any) -> dict[str, Any]:
    return {
        "schema": "triage.diagnosis/1", "incident": 7, "outcome": "failed", "failure_type": "ecc-error", "root_cause_class": "hardware-failure",
        "evidence": [
            {"file": "run/ecc.dmesg", "line": 2, "role": "root"},
            {"file": "/data/run/job.out", "line": 1, "role": "cascade"},
        ],
        "suspects": {"nodes": ["gpu-2"], "ranks": [], "gpus": []}, "action": "restart-excluding",
        "files": ["/data/run/job.out", "run/ecc.dmesg"], **fields,
    }  # fmt: skip


def export(tmp_path: Path, doc: Any) -> Path:
    place = tmp_path / "export"
    (place / "run").mkdir(parents=True, exist_ok=True)
    (place / "run" / "ecc.dmesg").write_text("boot\nuncorrectable\n")
    (place / "job.out").write_text("NCCL error\n")
    (place / "incident.json").write_text(json.dumps(doc))
    return place


def test_a_confirmed_incident_is_labelled_as_it_was_diagnosed(tmp_path: Path) -> None:
    place = export(tmp_path, {"result": diagnosis(), "verdict": "confirmed", "job": {"gpu_hours": 96.0}})
    made = import_incident(place, tmp_path / "cases")
    case = cases.load_case(made)
    assert (case.warnings, case.gpu_hours, case.source) == ((), 96.0, "incident 7, confirmed by a person")
    assert sorted(name for name, _ in case.files()) == ["job.out", "run/part.dmesg"]
    assert case.expect.to_json() == {
        "outcome": "failed", "failure_type": "ecc-error", "root_cause_class": "hardware-failure", "evidence": [["run/part.dmesg", 2, 2]],
        "nodes": ["gpu-2"], "action": ["restart-excluding"],
    }  # fmt: skip
    assert import_incident(place / "incident.json", tmp_path / "cases") == made


def test_a_corrected_incident_keeps_nothing_of_what_was_wrong(tmp_path: Path) -> None:
    doc = {**diagnosis(), "verdicts": [{"verdict": "confirmed"}, {"verdict": "corrected", "cause": "nccl-timeout"}],
           "expect": {"evidence": [["/data/run/job.out", 1, 1]]}}  # fmt: skip
    case = cases.load_case(import_incident(export(tmp_path, doc), tmp_path / "cases"))
    assert case.expect.to_json() == {
        "outcome": "failed", "failure_type": "nccl-timeout", "must_not": ["ecc-error"], "evidence": [["job.out", 1, 1]],
    }  # fmt: skip


def test_that_no_node_is_to_blame_is_a_label(tmp_path: Path) -> None:
    doc = {"result": diagnosis(), "verdict": {"verdict": "corrected", "failure_type": "type-error", "nodes": []}}
    assert cases.load_case(import_incident(export(tmp_path, doc), tmp_path / "cases")).expect.nodes == ()


@pytest.mark.parametrize(
    ("doc", "words"),
    [
        ({"result": diagnosis()}, "nobody has said whether the diagnosis was right"),
        ({"result": diagnosis(), "verdict": "none"}, "nobody has said"),
        ({"result": diagnosis(), "verdict": "rejected"}, "was rejected, and nothing says what it was"),
        ({"result": diagnosis(), "verdict": {"verdict": "corrected", "failure_type": "oom"}}, "failure_type: 'oom' is not known, did you mean out-of-memory?"),
        ({"result": diagnosis(files=["gone.log"]), "verdict": "confirmed"}, "the log gone.log does not lie beside it"),
        ({"result": diagnosis(files=["/etc/hostname"]), "verdict": "confirmed"}, "does not lie beside it"),
        ({"result": diagnosis(files=["../labels.csv"]), "verdict": "confirmed"}, "does not lie beside it"),
        ({"result": diagnosis(files=["a/job.out", "b/job.out"]), "verdict": "confirmed"}, "two of its logs are the same file"),
        ({"result": diagnosis(files=[], evidence=[]), "verdict": "confirmed"}, "names no log files"),
        ({"result": diagnosis(), "verdict": "confirmed", "expect": {"evidence": [["job.out", 1, 1]]}}, "is no [file, first line, last line] of its logs"),
        ({"result": diagnosis(evidence=[{"file": "run/ecc.dmesg", "line": 9, "role": "root"}]), "verdict": "confirmed"}, "evidence ends in line 9, the log has 2"),
        ({"result": diagnosis(), "verdict": "confirmed", "expect": {"outcome": ["failed"]}}, "outcome: ['failed'] is not"),
        ({"result": diagnosis(failure_type={}), "verdict": "confirmed"}, "failure_type: {} is none of the 44 known"),
        ({"result": diagnosis(files=["x" * 300]), "verdict": "confirmed"}, "does not lie beside it"),
        ({"result": {"schema": "other"}, "verdict": "confirmed"}, "holds no triage.diagnosis/1 object"),
        ([1], "is no JSON object"),
    ],
)  # fmt: skip
def test_what_is_no_confirmed_incident_says_why(tmp_path: Path, doc: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        import_incident(export(tmp_path, doc), tmp_path / "cases")
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not list((tmp_path / "cases").glob("*"))


def test_an_export_that_is_no_json_or_not_there_says_so(tmp_path: Path) -> None:
    place = export(tmp_path, {})
    (place / "incident.json").write_text("{")
    with pytest.raises(InputError, match="is no JSON"):
        import_incident(place, tmp_path / "cases")
    with pytest.raises(InputError, match="cannot be read"):
        import_incident(place / "gone.json", tmp_path / "cases")
    (place / "incident.json").unlink()
    with pytest.raises(InputError, match="holds 0 JSON files"):
        import_incident(place, tmp_path / "cases")


def test_case_yaml_stays_readable(tmp_path: Path, logs: Path) -> None:
    made = labels(tmp_path, logs, "file,failure_type,outcome,why\noom_run.log,out-of-memory,failed,Größe\n")
    text = (made[0] / "case.yaml").read_text("utf-8")
    assert text.startswith("schema: triage.case/1\nid: c") and "why: Größe" in text
    assert list(yaml.safe_load(text))[-1] == "expect"


def test_every_bad_row_is_named_at_once(tmp_path: Path, logs: Path) -> None:
    table = tmp_path / "labels.csv"
    rows = [
        "oom_run.log,keyerror,failed",
        "gone.log,ecc-error,failed",
        "oom_run.log,ecc-error,broken",
        f"{'x' * 400},ecc-error,failed",
    ]
    table.write_text("file,failure_type,outcome\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError) as caught:
        import_labels(table, logs, tmp_path / "cases")
    said = str(caught.value).split("\n  ")
    assert [line.split("labels.csv:")[1].split(":")[0] for line in said] == ["2", "3", "4", "5"]
    assert "did you mean key-error?" in said[0] and "is not one of failed, healthy" in said[2]
    assert not (tmp_path / "cases").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "labels.csv: is empty; begin it with a line of columns: file, failure_type, outcome"),
        ("a,b\n1,2\n", "unknown column 'a'"),
        ("file,why\n1,2\n", "lacks the columns failure_type and outcome"),
        (
            'file,failure_type,outcome\n"oom_run.log,ecc-error,failed\n',
            "is no CSV: unexpected end of data; is a quote not closed?",
        ),
        (f"file,failure_type,outcome\n{'x' * 200_000},ecc-error,failed\n", "is no CSV: field larger"),
    ],
)
def test_a_table_that_is_none_says_so(tmp_path: Path, logs: Path, text: str, said: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        import_labels(tmp_path / "labels.csv", logs, tmp_path / "cases")
    assert said in str(caught.value) and len(str(caught.value)) < 500


def test_a_quoted_heading_does_not_decide_what_separates(tmp_path: Path, logs: Path) -> None:
    (tmp_path / "labels.csv").write_text('file,failure_type,outcome,"_a;b;c;d;e"\noom_run.log,out-of-memory,failed,x\n')
    assert len(import_labels(tmp_path / "labels.csv", logs, tmp_path / "cases")) == 1


def test_evidence_may_lie_in_a_file_with_blanks_in_its_name(tmp_path: Path) -> None:
    job = tmp_path / "logs" / "job"
    job.mkdir(parents=True)
    (job / "rank 3.log").write_text("a\nb\nc\n")
    (job / "rank 4.log").write_text("a\nb\n")
    (tmp_path / "labels.csv").write_text(
        "file,failure_type,outcome,evidence\njob,out-of-memory,failed,rank 3.log: 2 - 3\n"
    )
    (place,) = import_labels(tmp_path / "labels.csv", tmp_path / "logs", tmp_path / "cases")
    (decisive,) = cases.load_case(place).expect.evidence or ()
    assert (decisive.first, decisive.last) == (2, 3)
    assert (place / decisive.file).read_text() == "a\nb\nc\n"
