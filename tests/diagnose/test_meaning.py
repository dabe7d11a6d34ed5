"""The kind of failure that a program's own words tell, where a signature knows their head alone."""

from __future__ import annotations

import pytest

from tests.helpers import job
from triage.cli import wiring
from triage.diagnose.judge import Knowledge, judge
from triage.diagnose.meaning import refined
from triage.diagnose.silence import UNNAMED

ABORT = "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return wiring.knowledge()


@pytest.mark.parametrize(
    ("words", "kind", "cause"),
    [
        ("--> FOAM FATAL IO ERROR: \nkeyword dt is undefined in dictionary \"system/control\"", "argument-error", "config-error"),
        ('[3] --> FOAM FATAL ERROR: \n[3] Cannot find file "points" in directory "polyMesh"', "file-not-found", "config-error"),
        ("Fatal error:\nThere is no domain decomposition for 54 ranks that is compatible with the", "argument-error", "config-error"),
        ("     Error in routine readpp (1):\n     file ./pseudo/Si.UPF not found", "file-not-found", "config-error"),
        ("At line 12 of file rd.f90\nFortran runtime error: End of file", "dataset-loading-error", "data-error"),
        ("forrtl: severe (29): file not found, unit 10, file /scratch/in.dat", "file-not-found", "config-error"),
        ("amrex::Abort::3::MLMG failed to converge !!!", "runtime-error", "config-error"),
        ("ERROR: LoadError: UndefVarError: `dt` not defined", "name-error", "software-bug"),
        ("[3]PETSC ERROR: --------------------- Error Message ------------\n[3]PETSC ERROR: Out of memory. Allocated 12", "host-out-of-memory", "resource-exhaustion"),
        ("FATAL from PE    62: soil DOES NOT EXIST INPUT/soil_type.tile1.nc", "file-not-found", "config-error"),
        ("[0] ARMCI Error: not enough memory for 12 doubles", "host-out-of-memory", "resource-exhaustion"),
        ("forrtl: Input/output error\nforrtl: severe (38): error during write, unit 20, file /s/restart.0012", "storage-error", "dependency-failure"),
        ("terminate called after throwing an instance of 'md::Exception'\n  what():  Error invoking kernel: CUDA error (700)", "cuda-error", "unknown"),
        ("An error occurred in line <27> of file <s/u.cc> in function\n    void f()\nAdditional information: \n    The solver did not converge.\nAborting!", "runtime-error", "config-error"),
        ("  #007: H5FDsec2.c line 736 in H5FD_sec2_write(): file write failed: errno = 5, error message = 'Input/output error'", "storage-error", "dependency-failure"),
        (" Must have more residues than processors!", "argument-error", "config-error"),
        ("0: pio_support::pio_die:: myrank= -1 : ERROR: nf_mod.F90:        1288 :\n0:  NetCDF: Invalid dimension ID or name", "dataset-loading-error", "data-error"),
        ("ERROR on proc 617: Failed to reallocate 1650272 bytes for array comm:buf_send (src/memory.cpp:105)", "host-out-of-memory", "resource-exhaustion"),
        ("*** FATAL ERROR (proc 0): in gasnetc_rdma_put() at gasnet_ofi.c:2849: fi_write failed: 12(Cannot allocate memory)", "network-error", "resource-exhaustion"),
        ("PIO: FATAL ERROR: Reading variable (x2o, varid=172) from file (f.nc, ncid=79) failed. err=-204. Aborting since the error handler was set to X", "os-error", "unknown"),
        ("[0] Received an Error in Communication: (0) 0:int2e_packed_buf_write: write failed:", "os-error", "dependency-failure"),
        (" line          391 NetCDF: No such file or directory", "file-not-found", "config-error"),
    ],
)  # fmt: skip
def test_the_words_of_a_program_tell_the_kind(knowledge: Knowledge, words: str, kind: str, cause: str) -> None:
    d = judge(job(f"solver starts\n{words}\n{ABORT}"), knowledge)
    assert (d.outcome, d.failure_type, d.root_cause_class) == ("failed", kind, cause)


def test_the_line_that_says_why_is_cited_as_well(knowledge: Knowledge) -> None:
    d = judge(job(f"Fatal error:\nToo many LINCS warnings (1002)\n{ABORT}"), knowledge)
    assert [(e.line, e.role) for e in d.evidence][:2] == [(1, "root"), (2, "root")]


def test_an_end_in_words_that_no_signature_knows_is_of_their_kind(knowledge: Knowledge) -> None:
    d = judge(job("reading\nError in file(file, 'rt'): cannot open the connection"), knowledge)
    assert (d.outcome, d.failure_type, d.status) == ("failed", "file-not-found", "hypothesis")
    d = judge(job("reading\nError: the moon is not blue"), knowledge)
    assert (d.outcome, d.failure_type, d.status) == ("failed", "unknown", "unknown")


@pytest.mark.parametrize(
    "words",
    ["aborting job:", "Aborting!", "time step 12 residual error: 1.2e-3", "STEP 12 done", "PIO: opening restart.nc"],
)
def test_lines_above_an_abort_that_say_nothing_of_it_are_not_its_reason(knowledge: Knowledge, words: str) -> None:
    d = judge(job(f"solver starts\n{words}\n{ABORT}"), knowledge)
    assert (d.failure_type, d.status, d.evidence[0].line) == ("runtime-error", "hypothesis", 3)


@pytest.mark.parametrize("words", ["Unknown error", "error 12 in step 3", "Could not find trapping x locations", ""])
def test_words_that_tell_no_kind_leave_it_open(words: str) -> None:
    assert refined(UNNAMED, words) is UNNAMED


ABORTED = "srun: error: nid02356: task 0: Aborted (core dumped)"


def test_the_reason_stands_just_above_a_task_that_aborted(knowledge: Knowledge) -> None:
    d = judge(
        job(f"[0 - 2a] 0.0 {{6}}{{malloc}}: insufficient system memory: 6291456000 bytes needed\n{ABORTED}"), knowledge
    )
    assert (d.failure_type, d.root_cause_class, d.evidence[0].line) == ("host-out-of-memory", "resource-exhaustion", 1)
    d = judge(job(f"residual error: 0.1\nfailed points: 3\n{ABORTED}"), knowledge)
    assert (d.failure_type, d.status) == ("unknown", "unknown")


NEXTFLOW = """ERROR ~ Error executing process > 'NFCORE:SORT (H1)'

Caused by:
  Process `NFCORE:SORT (H1)` terminated with an error exit status (1)

Command executed:

  samtools sort -o H1.bam permission-denied.bam

Command error:
  {said}

Work dir:
  /work/2b/e37e"""


@pytest.mark.parametrize(
    ("said", "kind", "line"),
    [
        ("samtools sort: truncated file. Aborting", "dataset-loading-error", 11),
        ("Picked up JAVA_TOOL_OPTIONS", "unknown", 1),
    ],
)
def test_a_workflow_engine_repeats_what_the_task_said(knowledge: Knowledge, said: str, kind: str, line: int) -> None:
    d = judge(job(NEXTFLOW.format(said=said)), knowledge)
    assert (d.outcome, d.failure_type, d.evidence[0].line) == ("failed", kind, line)


CFL = "d01 2018-02-17_08:55:30  33  points exceeded cfl=2 in domain d01 at time 2018-02-17_08:55:30 hours"


def test_too_long_a_time_step_is_the_cause_of_the_crash_and_no_failure_where_the_run_ends(knowledge: Knowledge) -> None:
    d = judge(job(f"{CFL}\nforrtl: severe (174): SIGSEGV, segmentation fault occurred"), knowledge)
    assert (d.failure_type, d.root_cause_class, d.evidence[0].line) == ("loss-spike", "config-error", 1)
    d = judge(job(f"{CFL}\nd01 2018-02-17_09:00:00 wrf: SUCCESS COMPLETE WRF"), knowledge)
    assert d.outcome == "healthy"
