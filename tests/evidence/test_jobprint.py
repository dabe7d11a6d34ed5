"""What kind of job a log is of: the same for a resubmission, another for another job."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from triage.domain import JobPrint
from triage.evidence.jobprint import ALIKE, HEAD_BYTES, job_print, similarity

LAUNCH = """\
+ srun --label -n 16 --container-image=registry.example/ada/pytorch:24.05-py3@sha256:0123456789abcdef python -u \
/home/ada/code/pretrain_gpt.py --config /scratch/ada/7b_4711123.yaml --model-path /data/llama-7b --lr 1e-4
2026-03-01 02:59:30 INFO | megatron.training - using world size: 16, data-parallel size: 2
[2026-03-01 02:59:31,250] [INFO] [deepspeed/comm.py:637:init_distributed] cdb=None
Submitted by ada on gpu-017 as job 4711
building GPT model with four layers
    iteration       10/  500 | lm loss: 7.1E+00
"""


def named(job: JobPrint) -> list[str]:
    return [feature for feature in job.features if not feature.startswith("word:")]


def test_what_the_job_runs_is_told_by_names_alone() -> None:
    job = job_print([LAUNCH.encode()])

    assert named(job) == [
        "config:7b_#.yaml", "framework:deepspeed", "framework:megatron", "image:pytorch", "model:llama-7b",
        "script:pretrain_gpt.py",
    ]  # fmt: skip
    assert not any(word in " ".join(job.features) for word in ("ada", "home", "4711", "gpu-017", "2026", "24.05"))


def test_a_resubmission_has_the_same_print() -> None:
    again = LAUNCH.replace("2026-03-01 02", "2027-11-30 23").replace("gpu-017", "gpu-241").replace("4711", "5822")
    again = again.replace("/home/ada", "/home/bob").replace("by ada", "by bob").replace("16", "32")

    assert job_print([again.encode()]) == job_print([LAUNCH.encode()])


def test_files_of_ranks_and_the_merged_log_have_the_same_print() -> None:
    lines = LAUNCH.splitlines(keepends=True)
    merged = "".join(f"{rank:2}: {line}" for line in lines for rank in range(4))
    files = ["".join(f"[rank{rank}]: {line}" for line in lines).encode() for rank in range(4)]

    assert job_print([merged.encode()]) == job_print(files) == job_print([LAUNCH.encode()])


def test_the_end_of_a_run_does_not_count() -> None:
    fails = LAUNCH + (
        "Traceback (most recent call last):\n"
        '  File "/home/ada/code/pretrain_gpt.py", line 7, in <module>\n    main()\n'
        "transformers.errors.NoLuckError: peft/vllm refused\n"
        "srun: error: gpu-017: task 3: Exited with exit code 1\n"
    )

    assert job_print([fails.encode()]) == job_print([LAUNCH.encode()])


def test_the_length_of_a_run_does_not_count() -> None:
    banner = "".join(f"loading piece {word} of corpus\n" for word in ["alpha", "beta", "gamma", "delta"])
    words = " ".join(f"{a}{b}rst" for a in "bcdfghjklmnp" for b in "aeiou")
    long = banner + words + "\n" + "step 7 took long\n" * 400 + "later wording entirely unseen\n"

    assert job_print([(banner + words + "\n").encode()]) == job_print([long.encode()])


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("torchrun --nproc_per_node=8 --rdzv_id 4711 train/sft.py --x 1", "sft.py"),
        ("$ python3.11 -m verl.trainer.main config=x", "verl.trainer.main"),
        ("python -u -m torch.distributed.launch --nproc_per_node 4 all_reduce_bench.py", "all_reduce_bench.py"),
        ("cmd = /opt/conda/bin/python -u -m deepspeed.launcher.launch --world_info=e30= main_cifar.py --x", "main_cifar.py"),
        ("accelerate launch --config_file=acc.yaml scripts/run_dpo.py recipe.yaml", "run_dpo.py"),
        ("+ mpirun -np 64 -x PATH ./bin/lmp_kokkos -in in.melt", "lmp_kokkos"),
        ("srun -N 4 -o /logs/out.txt /apps/vasp_std", "vasp_std"),
        ("torchrun sets this env variable for each worker", ""),
        ("srun: job 4711 has been allocated resources", ""),
        ("+ srun --ntasks=8 mkdir -p /mnt/logs/resnet/8N", ""),
        ("python3.10 -u /opt/env/lib/python3.10/site-packages/ray/_private/log_monitor.py --x", ""),
    ],
)  # fmt: skip
def test_scripts_of_command_lines(line: str, script: str) -> None:
    found = [feature.removeprefix("script:") for feature in job_print([line.encode()]).features if "script:" in feature]

    assert found == ([script] if script else [])


def test_a_script_that_only_its_traceback_names() -> None:
    text = 'Traceback (most recent call last):\n  File "/w/evaluate_all.py", line 7, in <module>\n    main()\nKeyError: 1\n'

    assert named(job_print([text.encode()])) == ["script:evaluate_all.py"]


def test_nothing_tells_nothing() -> None:
    assert job_print([]).features == job_print([b"", b"\n\x00\xff\n"]).features == ()


# ------------------------------------------------------------------------------------------------ similarity
def of(*features: str) -> JobPrint:
    return JobPrint(" ".join(features), features)


def test_a_job_with_another_configuration_is_alike() -> None:
    a, b = LAUNCH, LAUNCH.replace("7b_4711123.yaml", "13b.yaml").replace("llama-7b", "llama-13b")

    assert job_print([a.encode()]).key != job_print([b.encode()]).key
    assert ALIKE <= similarity(job_print([a.encode()]), job_print([b.encode()])) < 1


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        (of("script:sft.py", "framework:trl"), of("script:sft.py", "framework:trl", "config:x.yaml"), True),
        (of("script:sft.py", "framework:trl"), of("script:dpo.py", "framework:trl"), False),
        (of("script:sft.py", "framework:trl"), of("script:sft.py", "framework:jax"), False),
        # A name that any project may give says little without the wording.
        (of("script:train.py", "framework:trl"), of("script:train.py", "framework:trl"), True),
        (of("script:train.py", "word:a", "word:b"), of("script:train.py", "word:c", "word:d"), False),
        (of("script:train.py", "word:a", "word:b"), of("script:train.py", "word:a", "word:b", "model:m"), True),
        (of("framework:trl", "config:x.yaml"), of("framework:trl", "config:x.yaml", "model:m"), False),
        (of("word:a", "word:b", "word:c"), of("word:a", "word:b", "word:c", "script:x.py"), True),
        (of(), of("script:x.py"), False),
    ],
)
def test_which_jobs_are_alike(a: JobPrint, b: JobPrint, alike: bool) -> None:
    assert (similarity(a, b) >= ALIKE) is alike
    assert similarity(a, b) == similarity(b, a)


# ------------------------------------------------------------------------------------------------ real logs
@pytest.fixture(scope="module")
def real(shared: Path) -> dict[str, tuple[str, list[bytes]]]:
    """Of each case: its project, the heads of its files."""
    cases = {}
    for folder in sorted((shared / "logs").iterdir()):
        if not (folder / "case.yaml").is_file():
            continue
        case = yaml.safe_load((folder / "case.yaml").read_text("utf-8"))
        files = [
            p for name in case["inputs"] for p in [folder / name, *sorted((folder / name).rglob("*"))] if p.is_file()
        ]
        heads = [path.open("rb").read(HEAD_BYTES) for path in files]
        cases[folder.name] = (case["source"].partition("@")[0], heads)
    return cases


# What is another in a resubmission; digits of names (vit16, zero2.json) stay.
_OTHER_RUN = (
    re.compile(rb"\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|\d\d/\d\d/\d\d"),
    re.compile(rb"(?m)^ {0,6}\d{1,6}:|\[(?:rank|default)?\d{1,6}\]|\brank[ :=]{1,2}\d+"),
    re.compile(rb"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\br\d+i\d+n\d+\b|\b(?:gpu|node|cn|nid|worker)[-_]?\d+\b"),
    re.compile(rb"(?<![\w./-])\d{5,}(?![\w./-])|(?i:jobid|job_id|pid)[=: ]\d+"),
)


def resubmitted(head: bytes) -> bytes:
    for pattern in _OTHER_RUN:
        head = pattern.sub(lambda m: re.sub(rb"\d", lambda d: b"%d" % ((int(d[0]) + 3) % 10), m[0]), head)
    return head.replace(b"/home/", b"/users/home/of/another/")


def test_a_resubmission_of_a_real_job_has_the_same_print(real: dict[str, tuple[str, list[bytes]]]) -> None:
    other = [
        name
        for name, (_, heads) in real.items()
        if job_print(heads).key != job_print([resubmitted(head) for head in heads]).key
    ]

    assert other == []


def test_real_jobs_of_different_projects_differ(real: dict[str, tuple[str, list[bytes]]]) -> None:
    prints = {name: (project, job_print(heads)) for name, (project, heads) in real.items()}
    alike = [
        (a, b)
        for (a, (p, x)), (b, (q, y)) in itertools.combinations(prints.items(), 2)
        if p != q and similarity(x, y) >= ALIKE
    ]
    assert alike == []

    # And at least half of the jobs of a project that ran several times are recognised as such.
    runs = Counter(project for project, _ in prints.values())
    several = [(project, job) for project, job in prints.values() if runs[project] > 2]
    known = [
        job for project, job in several
        if sum(similarity(job, other) >= ALIKE for p, other in several if p == project) > 1
    ]  # fmt: skip
    assert len(known) >= 0.5 * len(several), f"{len(known)} of {len(several)}"
