"""Suites of tests that crash on purpose and end well, and those that do not."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

GTEST = """[ RUN      ] Crash.Dies
Segmentation fault (core dumped)
[       OK ] Crash.Dies (12 ms)
[==========] 3 tests from 1 test suite ran. (13 ms total)
[  PASSED  ] 2 tests.
"""
CTEST = """1/2 Test  #1: memory ..............................   Passed    0.20 sec
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
2/2 Test  #2: throws ..............................   Passed    0.20 sec
"""
CARGO = "thread 'ring' panicked at src/ring.rs:4:5:\nSegmentation fault (core dumped)\n"


@pytest.mark.parametrize(
    "text",
    [
        GTEST,
        CTEST + "\n100% tests passed, 0 tests failed out of 2\n\nTotal Test time (real) =   0.50 sec\n",
        CARGO + "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s\n",
        "t/crash.t .. Segmentation fault (core dumped)\nok\nAll tests successful.\nFiles=1, Tests=3\nResult: PASS\n",
        "Segmentation fault (core dumped)\nok  \texample.org/ring\t0.412s\n",
        "expecting: Segmentation fault\nSegmentation fault (core dumped)\ncrash: OK\nAll tests passed\n",
    ],
)
def test_a_suite_that_ends_well_is_healthy(diagnosed: Diagnose, text: str) -> None:
    assert diagnosed({"test.log": text}).outcome == "healthy"


@pytest.mark.parametrize(
    "text",
    [
        GTEST + "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Crash.Lives\n\n 1 FAILED TEST\n",
        CTEST + "\n50% tests passed, 1 tests failed out of 2\n",
        "Segmentation fault (core dumped)\nok  \texample.org/ring\t0.412s\nFAIL\texample.org/net\t0.100s\nFAIL\n",
        "All tests passed\nSegmentation fault (core dumped)\nmake: *** [test] Error 139\n",
    ],
)
def test_a_suite_that_says_later_that_tests_failed_is_not(diagnosed: Diagnose, text: str) -> None:
    assert diagnosed({"test.log": text}).outcome == "failed"
