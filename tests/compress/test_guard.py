import pytest

from triage.compress import guard

MARKS = {
    "error": [
        "ERROR: gradient overflow", "Error: no such option", "srun: error: node-3: task 1: Exited", "FATAL oops",
        "a CRITICAL b",
        "Traceback (most recent call last):", '3:   File "/a/train.py", line 3, in <module>', "ValueError: bad shape",
        "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory", "E1129 10:00:00.123 socket.cpp:3] x",
        "0: [E1129 10:00:00.123 ProcessGroupNCCL.cpp:3] x", "[ERROR] a", "exit code: 1", "exitcode  : -9 (pid: 3)",
        "ExitCode=137", "exited with exit code 2", "Received signal 15", "caught SIGTERM", "Killed", "12: Killed",
        "Segmentation fault (core dumped)", "KeyboardInterrupt", "  what():  NCCL", "frame #3: abort + 0x3",
        "returned non-zero exit status 1", "fatal: not a repository", "[error] 3#0: open() failed", "Bus error",
    ],
    "warning": [
        "WARN x", "n1:3:4 [0] NCCL WARN x", "a.py:3: UserWarning: x", "[W1118 01:02:03.1 socket.cpp:4] x",
        "[WARNING] a", "WARNING:root:x",
    ],
    "mention": [
        "rank 0 failed", "Failed to open libibverbs.so", "connection refused", "lm loss: nan", "grad norm: inf |",
        "number of nan iterations:   3 |", "3 errors found", "errors: 5", "failed: 10",
    ],
    "": [
        "reply file is /tmp/0/error.json", "errors: 0", "error_rate=0", "number of nan iterations:   0 |", "ignore_errors=True", "errors: 0, warnings: 0",
        "passed 3 (0 failed)", "--ignore-errors --max-restarts=3", "exit code 0", "exit code: 0", "exits 0",
        "signal handler",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "loss: 2.3 information: in", "test error: 0.23", "error rate 0.1",
        "failed=0,",
        "ERROR: 0", "GET /metrics 200", "no errors", "default page, filter", "NCCL INFO Connected all rings",
        '"error": null}',
    ],
}  # fmt: skip
CASES = [(grade, line) for grade, lines in MARKS.items() for line in lines]


@pytest.mark.parametrize(("grade", "line"), CASES)
def test_the_gravest_mark_is_found(grade, line):
    assert guard.alarm(line) == grade


@pytest.mark.parametrize(("grade", "line"), CASES)
def test_joined_lines_are_judged_as_each_alone(grade, line):
    quiet = "loss: 2.3"
    for joined in (f"{line}\n{quiet}\n", f"{quiet}\n{line}\n", f"{quiet}\n{line}"):
        assert guard.any_alarm(joined) == bool(grade)
        assert guard.any_alarm(joined.encode(), errors_only=True) == (grade == "error")
        assert not guard.all_alarm(joined.encode())


def test_a_benign_phrase_does_not_reach_over_a_line_end():
    assert guard.any_alarm("failed:\n0 of 3\n")


def test_marks_survive_erasing():
    import re2

    from triage.regex import skeleton

    erased = [re2.compile(pattern) for pattern in guard.erased()]
    for grade, line in CASES:
        if grade:
            assert any(pattern.search(skeleton(line.encode())) for pattern in erased), line
