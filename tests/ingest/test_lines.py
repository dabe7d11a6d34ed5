from __future__ import annotations

import time
from array import array
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triage.domain import LogLine, RawLine, Stamps
from triage.ingest.lines import LineParser
from triage.ingest.text import MAX_TEXT

REFERENCE = datetime(2024, 6, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def parse(text: str | bytes, **about: Any) -> LogLine:
    parser = LineParser("job.out", reference=REFERENCE, **about)
    return parser.parse(RawLine(1, text if isinstance(text, bytes) else text.encode()))


FORMATS: list[tuple[str, dict[str, object]]] = [
    # Python logging and its relatives
    ("2024-09-22 17:45:54 - INFO - datasets.builder - Overwrite", {"time": "2024-09-22T17:45:54", "level": "info"}),
    ("2024-07-16 17:50:21 - \x1b[34m\x1b[1mLOGS   \x1b[0m - saved", {"time": "2024-07-16T17:50:21", "level": "info"}),
    ("May-14 10:06:13.919 [Task monitor] DEBUG n.processor.TaskPollingMonitor - exit: 0; error: -", {"level": "debug"}),
    ("2023-11-03 08:13:57,467 [INFO] Loaded 1000 records", {"time": "2023-11-03T08:13:57.467", "level": "info"}),
    ("2022-06-06 09:17:48 | INFO | fairseq.utils | distributed init", {"time": "2022-06-06T09:17:48", "level": "info"}),
    ("[2022-06-06 09:17:56,160][fairseq_cli.train][INFO] - {}", {"time": "2022-06-06T09:17:56.160", "level": "info"}),
    (
        "2024-05-01 10:00:00.123 | ERROR    | __main__:run:17 - boom",
        {"time": "2024-05-01T10:00:00.123", "level": "error"},
    ),
    ("[WARNING] 2026-04-13 15:56:05,066 - Backup exists", {"time": "2026-04-13T15:56:05.066", "level": "warning"}),
    (
        "2026-03-16 22:57:31,552 - httpx - \x1b[32mINFO\x1b[0m - HEAD",
        {"time": "2026-03-16T22:57:31.552", "level": "info"},
    ),
    ("INFO:2025-11-01 01:22:28,430:jax._src.xla_bridge:925: x", {"time": "2025-11-01T01:22:28.430", "level": "info"}),
    ("WARNING:torch.distributed.run:", {"level": "warning"}),
    ("ERROR:root:it broke", {"level": "error"}),
    ("[info    ] [PLASMA] Launching", {"level": "info"}),
    ("08/21 [01:53:34] INFO     | >> [*] Computing dataset", {"time": "2023-08-21T01:53:34", "level": "info"}),
    ("[15:29:44:893254]:[Warning]:[Sim] Simulator.cpp(508)", {"level": "warning"}),
    ("/x/functional.py:1603: UserWarning: The default value", {"level": "warning"}),
    ("Traceback (most recent call last):", {"level": "error", "program": "python"}),
    ("torch.distributed.DistNetworkError: failed to listen", {"level": "error"}),
    ("ValueError: bad", {"level": "error"}),
    ("nothing that is an error here", {"level": None, "time": None, "rank": None, "node": None, "gpu": None}),
    ("10/27/2022 09:58:56 - INFO - torch.distributed - Added", {"time": "2022-10-27T09:58:56", "level": "info"}),
    ("27/10/2022 09:58:56 x", {"time": "2022-10-27T09:58:56"}),
    ("2025-12-14 03:10:37,745\tSUCC scripts.py:860 -- started", {"time": "2025-12-14T03:10:37.745", "level": "info"}),
    # ISO with offsets
    ("2025-08-17T00:04:41.824748Z INFO agent", {"time": "2025-08-17T00:04:41.824748+00:00", "level": "info"}),
    ("2024-05-01T10:00:00+02:00 started", {"time": "2024-05-01T10:00:00+02:00"}),
    ("2024-05-01T10:00:00.123456789Z stdout F hello", {"time": "2024-05-01T10:00:00.123456"}),
    ("2021-10-20 09:34:06 PM starts", {"time": "2021-10-20T21:34:06"}),
    ("STARTING TIMING RUN AT 2021-11-05 08:28:22 PM", {"time": "2021-11-05T20:28:22"}),
    # Hugging Face, DeepSpeed, vLLM, Lightning, Megatron
    ("[INFO|trainer.py:2081] 2024-06-02 14:42:30,292 >>   Batch", {"time": "2024-06-02T14:42:30.292", "level": "info"}),
    ("[WARNING|2025-04-01 06:58:05] llamafactory.data:162 >> x", {"time": "2025-04-01T06:58:05", "level": "warning"}),
    (
        "[2024-06-02 14:42:27,463] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed Flops",
        {"time": "2024-06-02T14:42:27.463", "level": "info", "rank": 0},
    ),
    (
        "2024-09-22 17:45:49 - WARNING - __main__ - Process rank: 3, device: cuda:3, n_gpu: 1",
        {"time": "2024-09-22T17:45:49", "level": "warning", "rank": 3, "gpu": "3"},
    ),
    ("[default3]:iteration 7 loss 2.0", {"local_rank": 3, "rank": None}),
    ("INFO 12-14 03:11:36 utils.py:916] Found nccl", {"time": "2023-12-14T03:11:36", "level": "info"}),
    ("[Rank 128] (after 20 iterations) memory (MB)", {"rank": 128}),
    ("global rank 6 is loading checkpoint /x", {"rank": 6}),
    ("rank #1: Traceback (most recent call last):", {"rank": 1, "level": "error"}),
    ("GLOBAL_RANK: 5, MEMBER: 6/8", {"rank": 5}),
    # torch, glog, absl
    (
        "[rank17]:[E1231 12:00:00.123 ProcessGroupNCCL.cpp:632] [Rank 17] Watchdog caught",
        {"time": "2023-12-31T12:00:00.123", "rank": 17, "level": "error", "program": "torch"},
    ),
    (
        "[rank3]:[E923 15:45:08.084919234 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog",
        {"time": "2023-09-23T15:45:08.084919", "rank": 3, "level": "error", "program": "torch"},
    ),
    ("[rank5]:[E ProcessGroupNCCL.cpp:523] [Rank 5] Watchdog", {"rank": 5, "level": "error", "program": "torch"}),
    ("[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog", {"rank": 1, "level": "error", "program": "torch"}),
    ("[W socket.cpp:464] [c10d] failed to bind", {"level": "warning", "program": "torch"}),
    ("[rank6]:     main()", {"rank": 6}),
    ("[PG ID 0 PG GUID 0(default_pg) Rank 4] Timeout", {"rank": 4}),
    (
        "W1025 21:14:01.211000 2808260 site-packages/torch/distributed/run.py:793] ******",
        {"time": "2023-10-25T21:14:01.211", "level": "warning", "program": "torch"},
    ),
    ("I0503 10:11:12.131415   777 agent.cc:10] ok", {"time": "2024-05-03T10:11:12.131415", "level": "info"}),
    ("W0000 00:00:1755712621.377105 1314661 op_level_cost_estimator.cc:699] E", {"time": "2025-08-20T17:57:01.377105"}),
    (
        "[2024-06-02 14:42:07,639] torch.distributed.run: [WARNING] ****",
        {"time": "2024-06-02T14:42:07.639", "level": "warning"},
    ),
    (
        "2020-01-01 15:12:49.577625: I tensorflow/stream_executor/x.cc:42] ok",
        {"time": "2020-01-01T15:12:49.577625", "level": "info"},
    ),
    (
        "2024-03-22 15:30:16.535500782 [E:onnxruntime:Default, env.cc:251 ThreadMain] failed",
        {"time": "2024-03-22T15:30:16.535500", "level": "error"},
    ),
    ("  rank      : 6 (local_rank: 2)", {"rank": 6, "local_rank": 2}),
    ("  time      : 2025-10-25_22:01:11", {"time": "2025-10-25T22:01:11"}),
    ("  host      : dgx-15.cm.cluster", {"node": "dgx-15.cm.cluster"}),
    (
        "[2024-01-01 00:00:01,000] x: [ERROR] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /x",
        {"local_rank": 0, "level": "error"},
    ),
    # NCCL, MPI, UCX
    (
        "gpu017:2971403:2971574 [3] NCCL INFO NET/IB : Using",
        {"node": "gpu017", "gpu": "3", "program": "nccl", "level": "info"},
    ),
    (
        "ip-0A0C040A:85697:85897 [4] sharp_plugin.c:288 NCCL WARN NET/IB :SHARP coll init error",
        {"node": "ip-0A0C040A", "gpu": "4", "program": "nccl", "level": "warning"},
    ),
    (
        "[2026-05-05 06:16:47] node-01:189884:189884 [3] plugin/net.cc:310 NCCL WARN x",
        {"time": "2026-05-05T06:16:47", "node": "node-01", "gpu": "3", "program": "nccl", "level": "warning"},
    ),
    ("[1,5]<stderr>:Fatal error", {"rank": 5}),
    ("[prterun-n1-77@1,12]<stdout>: hello", {"rank": 12}),
    (
        "[1636144025.381900] [ip-0A0C0406:84861:0]          parser.c:1885 UCX  WARN unused",
        {"time": "2021-11-05T20:27:05.381900", "node": "ip-0A0C0406", "level": "warning"},
    ),
    ("mpirun noticed that process rank 3 with PID 77 on node c12 exited on signal 9", {"rank": 3, "node": "c12"}),
    ("MPI_ABORT was invoked on rank 7 in communicator MPI_COMM_WORLD", {"rank": 7}),
    ("[n012:12345] *** Process received signal ***", {"node": "n012"}),
    # Slurm
    (
        "slurmstepd: error: *** JOB 310529 ON dgx-30 CANCELLED AT 2025-10-30T05:33:43 DUE TO PREEMPTION ***",
        {"time": "2025-10-30T05:33:43", "node": "dgx-30", "level": "error", "program": "slurm"},
    ),
    (
        "slurmstepd-gpu019: error: container_p_join: open failed",
        {"node": "gpu019", "level": "error", "program": "slurm"},
    ),
    (
        "srun: error: jean-zay-iam37: task 3: Exited with exit code 1",
        {"node": "jean-zay-iam37", "rank": 3, "level": "error"},
    ),
    ("srun: error: gpu012: tasks 0-3: Killed", {"node": "gpu012", "rank": None, "program": "slurm"}),
    ("srun: error: Node failure on jean-zay-iam37", {"node": "jean-zay-iam37"}),
    (
        "[2023-05-01T12:00:00.123] error: Node gpu12 not responding",
        {"time": "2023-05-01T12:00:00.123", "level": "error"},
    ),
    ("[2023-05-01T12:00:00.123] debug:  sched: Running", {"level": "debug"}),
    # kernel, syslog, journal
    (
        "Feb 01 14:25:31 host7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.",
        {"time": "2024-02-01T14:25:31", "node": "host7", "program": "kernel", "gpu": "0000:9b:00", "level": "error"},
    ),
    ("Aug 17 00:05:01 jplc7eb7-vm-0 CRON[53207]: (root) CMD", {"node": "jplc7eb7-vm-0", "program": "cron"}),
    (
        "[Sun Feb 23 16:24:30 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2, Timeout",
        {"time": "2025-02-23T16:24:30", "program": "kernel", "gpu": "0000:9b:00"},
    ),
    ("[12345.678901] Out of memory: Killed process 77 (python)", {"time": None, "program": "kernel"}),
    ("[ 130.456250] [ T1946] NVRM: Xid (PCI:0000:2b:00): 31", {"time": None, "program": "kernel", "gpu": "0000:2b:00"}),
    ("<3>[   13.717074] audit: type=1400", {"level": "error", "program": "kernel", "time": None}),
    (
        "2024-05-01T12:00:00+0200 n12 kernel: oom-kill: x",
        {"time": "2024-05-01T12:00:00+02:00", "node": "n12", "program": "kernel"},
    ),
    ("2024-05-01T12:00:00.1+02:00 n12 slurmd[77]: error: x", {"node": "n12", "program": "slurm", "level": "error"}),
    ("[Dec 18 2024 19:09:50] [ERROR] [tid 1579] detected NVSwitch", {"time": "2024-12-18T19:09:50", "level": "error"}),
    ("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", {"gpu": "0000:18:00", "program": "kernel"}),
    # Ray, Spark, Hadoop, log4j
    (
        "\x1b[36m(WorkerDict pid=22057, ip=1.2.3.4)\x1b[0m INFO 12-14 03:11:36 utils.py:916] x",
        {"program": "ray", "node": "1.2.3.4", "level": "info"},
    ),
    ("(EnvWorker pid=22062) ready", {"program": "ray", "node": None}),
    (
        "(raylet) [2025-12-14 03:37:18,593 E 13997 14029] (raylet) file_system_monitor.cc:116: x",
        {"time": "2025-12-14T03:37:18.593", "level": "error", "program": "ray"},
    ),
    (
        "2025-02-25 19:42:16,238\tINFO worker.py:1841 -- Started",
        {"time": "2025-02-25T19:42:16.238", "level": "info", "node": None},
    ),
    (
        "17/06/09 20:10:42 INFO executor.Executor: Starting executor",
        {"time": "2017-06-09T20:10:42", "level": "info", "node": None},
    ),
    (
        "2015-10-18 18:04:11,034 ERROR [main] org.apache.X: bad",
        {"time": "2015-10-18T18:04:11.034", "level": "error", "node": None},
    ),
    # JSON lines
    (':::MLLOG {"namespace": "", "time_ms": 1634765649952, "key": "init_start"}', {"time": "2021-10-20T21:34:09.952"}),
    (
        '{"level":"error","ts":"2024-05-01T10:00:00Z","msg":"x","rank":4}',
        {"time": "2024-05-01T10:00:00", "level": "error", "rank": 4},
    ),
    (
        '{"ts": 1714557600.5, "level": "WARN", "host": "n1"}',
        {"time": "2024-05-01T10:00:00.5", "level": "warning", "node": "n1"},
    ),
    # behind a progress bar
    (
        "100%|██████████| 4/4 [14:31<00:00, 219.64s/it][INFO|trainer.py:1339] 2024-06-02 14:42:30,292 >> x",
        {"time": "2024-06-02T14:42:30.292", "level": "info"},
    ),
    (
        "\r 10%|█ | 1/9 [00:01<00:09, 1.1s/it]\r 20%|██ | 2/9 [00:02<00:08, 1.1s/it][rank2]:[E922 03:32:06.1 ProcessGroupNCCL.cpp:607] x",
        {"rank": 2, "level": "error", "program": "torch"},
    ),
    (
        "Generating train split: 0 examples [00:00, ? examples/s]slurmstepd-gpu019: error: *** JOB 2 ON gpu019 CANCELLED AT "
        "2024-09-22T13:28:49 ***",
        {"time": "2024-09-22T13:28:49", "level": "error", "program": "slurm", "node": "gpu019"},
    ),
    (
        "2024-05-01T10:00:00.5Z stderr F [rank3]: Traceback (most recent call last):",
        {"time": "2024-05-01T10:00:00.5", "rank": 3, "level": "error", "program": "python"},
    ),
    # GPU memory
    ("GPU 3 has a total capacity of 79.15 GiB", {"gpu": "3"}),
    ("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 79.35 GiB total capacity", {"gpu": "1"}),
]


@pytest.mark.parametrize(("text", "fields"), FORMATS, ids=[text[:50] for text, _ in FORMATS])
def test_formats(text: str, fields: dict[str, object]) -> None:
    line = parse(text)
    expected = {
        name: at(value) if name == "time" and isinstance(value, str) else value for name, value in fields.items()
    }
    assert {name: getattr(line, name) for name in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "rank 3 of the matrix is low",
        "The rank: 5 stars",
        "[0]:",
        "[3] a list item",
        "17: not a label in a file without labels",
        "loss 12:34:56",
        "step:2895/20344 train_loss:3.3214",
        "lora_rank=16, alpha=32",
        "Epoch 3: rank_loss 0.3",
        "tensor([1, 2, 3])",
        "top-rank 7",
        '    "rank": 0,',
    ],
)
def test_no_rank_out_of_random_numbers(text: str) -> None:
    assert parse(text).rank is None


def test_task_labels_count_only_where_the_whole_file_has_them() -> None:
    labelled = [f"{i % 4:4d}: step {i}".encode() for i in range(20)]
    parser = LineParser("job.out")
    parser.learn(labelled)
    line = parser.parse(RawLine(1, b" 212: [2024-05-01 10:00:00] boom"))
    assert (line.rank, line.time) == (212, at("2024-05-01T10:00:00"))
    parser.learn([*labelled[:5], *[b"Epoch 1"] * 20])
    assert parser.parse(RawLine(1, b"212: boom")).rank is None
    parser.learn([f"{i}: a numbered line".encode() for i in range(20)])
    assert parser.parse(RawLine(1, b"7: a numbered line")).rank is None
    parser.learn([f"03:39:{i:02d}.342 [I] Progress".encode() for i in range(20)])
    assert parser.parse(RawLine(1, b"03:39:52.342 [I] Progress")).rank is None


def test_host_labels() -> None:
    parser = LineParser("job.out")
    parser.learn([f"node{i}: some text".encode() for i in range(20)])
    line = parser.parse(RawLine(1, b"node12: [rank3]: ValueError: x"))
    assert (line.node, line.rank) == ("node12", 3)


def test_the_year_comes_from_the_file_itself_before_its_date_on_disk() -> None:
    parser = LineParser("job.out", reference=REFERENCE)
    parser.learn([b"E1231 23:59:00.1 x.cc:1] a", b"step", b"[2019-12-31 23:58:00,000] b"])
    assert parser.parse(RawLine(1, b"E1231 23:59:00.5 x.cc:1] a")).time == at("2019-12-31T23:59:00.5")
    # and goes over New Year
    assert parser.parse(RawLine(2, b"E0101 00:00:01.0 x.cc:1] a")).time == at("2020-01-01T00:00:01")
    assert LineParser("job.out").parse(RawLine(1, b"E1231 23:59:00.5 x.cc:1] a")).time is None


def test_a_time_of_day_goes_on_from_the_last_date() -> None:
    parser = LineParser("job.out")
    assert parser.parse(RawLine(1, b"03:39:52.342 [I] x")).time is None
    parser.parse(RawLine(2, b"Sat Nov  1 23:22:06 2025"))
    assert parser.parse(RawLine(3, b"23:39:52.342 [I] x")).time == at("2025-11-01T23:39:52.342")
    assert parser.parse(RawLine(4, b"00:10:00.000 [E] x")).time == at("2025-11-02T00:10:00")


def test_zones() -> None:
    assert parse("2024-05-01T10:00:00-07:30 x").time == datetime(2024, 5, 1, 10, tzinfo=timezone(-timedelta(hours=7.5)))
    assert parse("2024-05-01 10:00:00 x").time == datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_seconds_since_1970_among_stamps_of_the_clock_on_the_wall() -> None:
    def times(*texts: str) -> list[datetime | None]:
        parser = LineParser("job.out")
        return [parser.parse(RawLine(number, text.encode())).time for number, text in enumerate(texts, 1)]

    # east of Greenwich: the counted stamp lies back
    east = times("[2022-11-22 05:16:20,118] [INFO] x", "[1669076180.993959] [n1:69690:0] ib_md.c:348 UCX ERROR y")
    assert east[1] == at("2022-11-22T05:16:20.993959")
    # west: the next one on the wall does
    west = times("[1669076180.500] [n1:1:0] UCX x", "[2022-11-21 18:16:21,0] a", "[1669076190.500] [n1:1:0] UCX x")
    assert west == [at("2022-11-22T00:16:20.5"), at("2022-11-21T18:16:21"), at("2022-11-21T18:16:30.5")]
    # hours of silence are no zone
    assert times("[2022-11-22 05:16:20,118] x", "[1669101380.000] [n1:1:0] y")[1] == at("2022-11-22T07:16:20")


def test_what_the_file_name_says_holds_for_lines_that_say_nothing() -> None:
    parser = LineParser("rank_3.log", rank=3, node="n7")
    assert [
        (line.rank, line.node) for line in (parser.parse(RawLine(1, b"boom")), parser.parse(RawLine(2, b"[rank5]: x")))
    ] == [
        (3, "n7"),
        (5, "n7"),
    ]
    assert LineParser("slurmd.log", "slurm").parse(RawLine(1, b"x")).program == "slurm"


def test_text_is_clean() -> None:
    assert parse(b"\x1b[1;31mERROR\x1b[0m \x1b]0;title\x07red\x00\x08\x07 \xff end\r").text == "ERROR red � end"
    assert parse("a\u202eb\u2028c\td").text == "abc\td"
    assert parse(b"").text == ""


def test_progress_bars_at_their_last_state() -> None:
    bar = "".join(f"\r {i}%|█         | {i}/100 [00:01<00:09,  1.1it/s]" for i in range(50))
    assert parse(bar).text == " 49%|█         | 49/100 [00:01<00:09,  1.1it/s]"
    assert parse(bar + "\r").text == " 49%|█         | 49/100 [00:01<00:09,  1.1it/s]"
    shown = parse(bar + " loss is nan" + bar).text
    assert "loss is nan" in shown and shown.count("it/s") == 2
    assert parse("wandb: - 0.1 MB of 0.2 MB uploaded\rwandb: \\ 0.2 MB of 0.2 MB uploaded").text.count("uploaded") == 1


def test_long_lines_keep_both_ends() -> None:
    text = parse("start " + "x" * 5_000_000 + " end").text
    assert len(text) <= MAX_TEXT
    assert text.startswith("start ") and text.endswith(" end") and "left out" in text


def test_secrets_go_even_over_several_lines() -> None:
    parser = LineParser("job.out")
    key = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA1234567890abcdef",
        "q" * 64,
        "-----END RSA PRIVATE KEY-----",
        "d" * 64,
    ]
    texts = [parser.parse(RawLine(i, line.encode())).text for i, line in enumerate(key, 1)]
    assert texts == [*["[redacted:private-key]"] * 3, "-----END RSA PRIVATE KEY-----", "d" * 64]
    assert "hunter2" not in parser.parse(RawLine(9, b"export DB_PASSWORD=hunter2")).text


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=6))
def test_never_raises(raws: list[bytes]) -> None:
    parser = LineParser("job.out", reference=REFERENCE)
    parser.learn(raws)
    for number, raw in enumerate(raws, 1):
        line = parser.parse(RawLine(number, raw))
        assert line.time is None or line.time.tzinfo is not None


PIECES = st.sampled_from(
    [text for text, _ in FORMATS]
    + ["[", "]", "2024-13-45 25:61:61", "E0000 00:00:00", "99/99 [99:99:99]", "\r", " ", "9999999999.999", "rank", ": "]
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=4).map("".join))
def test_never_raises_on_what_looks_like_prefixes(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    "piece",
    [
        "[rank1]:",
        "\x1b[",
        "\r1%|",
        "1:",
        "- ",
        "[a]",
        "(a pid=1) ",
        "2024-01-01 00:00:00 ",
        "E1 ",
        "\x1b]",
        "1/2 [1]",
        "{",
        '"rank',
        "rank ",
    ],
)
def test_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        raw = RawLine(1, (piece * (length // len(piece) + 1))[:length].encode())
        best = 9.0
        for _ in range(3):
            start = time.perf_counter()
            LineParser("job.out").parse(raw)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(160_000) < 8 * seconds(40_000) + 0.05


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("2026-03-04T02:02:45Z rank3 ZeroDivisionError: division by zero", 3),
        ("2026-03-04 02:02:45,120 rank12 step 4", 12),
        ("rank0: ready", 0),
        ("ranked 3 candidates", None),
        ("the worst rank3 of all", None),
    ],
)
def test_a_column_that_names_the_rank_is_read(text: str, rank: int | None) -> None:
    assert LineParser("job.log", "job").parse(RawLine(1, text.encode())).rank == rank


def test_what_a_runtime_says_of_the_time_counts_more_than_the_clock_of_a_line() -> None:
    said = at("2026-11-30T08:00:00")
    stamps = Stamps(array("q", [2, 4]), array("d", [said.timestamp(), said.timestamp() + 60]))
    parser = LineParser("job.out", stamps=stamps)
    lines = ("2025-01-01 10:00:00 INFO a", "2025-01-01 10:00:01 INFO b", "no clock at all", "nor here")
    times = [parser.parse(RawLine(n, line.encode())).time for n, line in enumerate(lines, 1)]
    assert times == [None, said, said, said + timedelta(minutes=1)]
