"""Which signature wins on a line, and what part it may play: specific beats generic, consequences are never causes."""

from __future__ import annotations

from functools import cache

import pytest

from triage import kb
from triage.domain import LogLine, Signature
from triage.evidence.match import Matcher


@cache
def matcher() -> Matcher:
    return Matcher(kb.signatures())


def readings(line: str, kind: str = "job") -> list[Signature]:
    """The signatures that fire, the heaviest first."""
    return [f.signature for f in matcher().match(LogLine("job.log", 1, line), kind)]


def roots(line: str) -> list[str]:
    return [s.id for s in readings(line) if s.role == "root"]


# Lines as programs print them, the signature that must win, its failure type.
BEST = [
    # Python: specific before generic
    ("[rank2]: KeyError: 'input_ids'", "py.key-error", "key-error"),
    ("(Worker pid=77, ip=10.1.2.3) IndexError: list index out of range", "py.index-error", "index-error"),
    ("2024-03-04 05:06:07,890 NameError: name 'tokenizer' is not defined", "py.name-error", "name-error"),
    ("gpu-12: ZeroDivisionError: float division by zero", "py.zero-division-error", "zero-division-error"),
    ("SyntaxError: 'return' outside function", "py.syntax-error", "syntax-error"),
    ("0: AttributeError: 'NoneType' object has no attribute 'shape'", "py.attribute-error", "attribute-error"),
    ("AttributeError: module 'numpy' has no attribute 'int'.", "ver.numpy-removed", "attribute-error"),
    ("[default3]:AssertionError: loss must be a scalar", "py.assertion-error", "assertion-error"),
    ("TypeError: forward() got an unexpected keyword argument 'labels'", "py.unexpected-argument", "type-error"),
    ("TypeError: unsupported operand type(s) for +: 'int' and 'str'", "py.type-error", "type-error"),
    ("ValueError: could not convert string to float: 'abc'", "py.value-error", "value-error"),
    ("[rank0]: RuntimeError: shape mismatch in my_kernel", "py.runtime-error", "runtime-error"),
    (
        "RuntimeError: The size of tensor a (512) must match the size of tensor b (511) at non-singleton dimension 1",
        "py.tensor-mismatch",
        "runtime-error",
    ),
    ("mylib.errors.PlannerFailure: no plan for stage 3", "py.other-exception", "runtime-error"),
    ("MemoryError: Unable to allocate 93.1 GiB for an array", "py.memory-error", "host-out-of-memory"),
    ("ModuleNotFoundError: No module named 'apex'", "py.import-error", "import-error"),
    ("ImportError: cannot import name 'Foo' from 'bar.baz' (/x/baz.py)", "ver.cannot-import-name", "import-error"),
    ("PermissionError: [Errno 13] Permission denied: '/data/lock'", "py.permission-error", "permission-error"),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'conf.yaml'", "py.file-not-found", "file-not-found"),
    ("NotADirectoryError: [Errno 20] Not a directory: 'ckpt'", "py.os-error", "os-error"),
    # operating system, storage
    ("[rank4]: OSError: [Errno 28] No space left on device", "st.disk-full", "disk-full"),
    ("OSError: [Errno 122] Disk quota exceeded: '/home/u/.cache/a'", "st.quota", "disk-full"),
    ("OSError: [Errno 116] Stale file handle: '/nfs/a'", "st.stale-handle", "storage-error"),
    ("OSError: [Errno 5] Input/output error", "st.io-error", "storage-error"),
    ("OSError: [Errno 24] Too many open files: '/data/x'", "dl.ancdata", "os-error"),
    ("[rank1]: RuntimeError: received 0 items of ancdata", "dl.ancdata", "os-error"),
    ("OSError: [Errno 98] Address already in use", "td.address-in-use", "connection-error"),
    (
        "RuntimeError: unable to write to file </torch_9_8>: No space left on device (28)",
        "dl.shm-full",
        "host-out-of-memory",
    ),
    (
        "RuntimeError: PytorchStreamWriter failed writing file data/0: file write failed",
        "st.disk-full",
        "disk-full",
    ),
    # data
    (
        "[rank0]: datasets.exceptions.DatasetNotFoundError: Dataset 'a/b' doesn't exist on the Hub",
        "ds.dataset-not-found",
        "dataset-loading-error",
    ),
    ("pyarrow.lib.ArrowInvalid: Could not open Parquet input source", "ds.dataset-parse", "dataset-loading-error"),
    ("json.decoder.JSONDecodeError: Expecting ',' delimiter: line 1", "ds.json-decode", "dataset-loading-error"),
    ("PIL.UnidentifiedImageError: cannot identify image file 'a.jpg'", "ds.media-corrupt", "dataset-loading-error"),
    ("RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed. ", "dl.worker-killed", "dataloader-killed"),
    ("RuntimeError: DataLoader worker (pid 9) is killed by signal: Hangup. ", "dl.worker-hangup", "cancelled"),
    (
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject operation: no",
        "st.object-store-denied",
        "permission-error",
    ),
    (
        "botocore.exceptions.ClientError: An error occurred (503) when calling the PutObject operation: Slow Down",
        "st.object-store",
        "storage-error",
    ),
    # checkpoints and models
    (
        "RuntimeError: PytorchStreamReader failed reading file data/1: file read failed",
        "ck.zip-broken",
        "checkpoint-corrupt",
    ),
    ("EOFError: Ran out of input", "ck.zip-broken", "checkpoint-corrupt"),
    (
        "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
        "ck.safetensors",
        "checkpoint-corrupt",
    ),
    ("RuntimeError: Error(s) in loading state_dict for GPTModel:", "ck.state-dict-mismatch", "model-loading-error"),
    (
        "OSError: /ckpt/a does not appear to have a file named config.json. Checkout 'x'",
        "hf.no-such-model",
        "model-loading-error",
    ),
    (
        "OSError: We couldn't connect to 'https://huggingface.co' to load this file",
        "hf.hub-unreachable",
        "connection-error",
    ),
    (
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: x)",
        "hf.gated",
        "permission-error",
    ),
    # versions
    (
        "ImportError: /x/lib/libtorch_cuda.so: undefined symbol: ncclGroupSimulateEnd",
        "ver.undefined-symbol",
        "version-mismatch",
    ),
    (
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0)",
        "ver.requirement",
        "version-mismatch",
    ),
    ("AssertionError: Torch not compiled with CUDA enabled", "ver.no-cuda-build", "version-mismatch"),
    # arguments, shell
    ("pretrain.py: error: unrecognized arguments: --foo", "sh.arguments-rejected", "argument-error"),
    ("t.py: error: unrecognized arguments: --local-rank=1", "te.local-rank-argument", "argument-error"),
    ("omegaconf.errors.ConfigKeyError: Key 'x' is not in struct", "sh.config-rejected", "argument-error"),
    ("job.sh: line 3: torchrun: command not found", "sh.command-not-found", "file-not-found"),
    ("job.sh: line 3: nvidia-smi: command not found", "sh.side-command-not-found", "file-not-found"),
    (
        "python: can't open file '/w/train.py': [Errno 2] No such file or directory",
        "sh.cannot-open-script",
        "file-not-found",
    ),
    ("ninja: build stopped: subcommand failed.", "sh.make-failed", "called-process-error"),
    # torch distributed
    (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 3 is running collective: X, but Rank 0",
        "td.collective-mismatch",
        "collective-mismatch",
    ),
    (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
        "td.ddp-unused-parameters",
        "runtime-error",
    ),
    (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address.",
        "td.address-in-use",
        "connection-error",
    ),
    ("SignalException: Process 12 got signal: 2", "te.signal-interrupt", "cancelled"),
    ("SignalException: Process 12 got signal: 1", "te.signal-hangup", "cancelled"),
    ("[rank0]: KeyboardInterrupt", "py.keyboard-interrupt", "cancelled"),
    # numerics
    ("step 12 | loss: nan | lr 1e-4", "num.loss-nan", "loss-spike"),
    ("FloatingPointError: Minimum loss scale reached (0.0001).", "num.loss-scale-minimum", "loss-spike"),
    (
        "AssertionError: Rank 9: found NaN in local grad norm in backward pass. Device: 1, node: n7",
        "num.nan-grad-rank",
        "loss-spike",
    ),
    # Slurm
    (
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***",
        "slurm.time-limit",
        "time-limit",
    ),
    (
        " 3%|x | 1/9slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***",
        "slurm.cancelled",
        "cancelled",
    ),
    (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO PREEMPTION ***",
        "slurm.preempted",
        "preempted",
    ),
    ("srun: error: Node failure on n[3-4]", "slurm.node-failure", "node-failure"),
    (
        "slurmstepd: error: Detected 1 oom-kill event(s) in step 7.batch cgroup.",
        "slurm.oom-kill",
        "host-out-of-memory",
    ),
    (
        "sbatch: error: Batch job submission failed: Invalid qos specification",
        "slurm.submit-rejected",
        "launch-failure",
    ),
    # Kubernetes, Ray, JAX, TensorFlow, Hadoop
    ("    Reason:       OOMKilled", "k8s.oom-killed", "host-out-of-memory"),
    ("Error: ErrImagePull", "k8s.image-pull", "launch-failure"),
    ("ray.exceptions.OutOfMemoryError: Task was killed", "ray.memory-monitor", "host-out-of-memory"),
    (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.",
        "jax.out-of-memory",
        "out-of-memory",
    ),
    ("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: RET_CHECK failure", "jax.internal", "runtime-error"),
    (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: failed to allocate memory",
        "tf.out-of-memory",
        "out-of-memory",
    ),
    ("java.lang.OutOfMemoryError: GC overhead limit exceeded", "jvm.out-of-memory", "host-out-of-memory"),
    ("java.net.NoRouteToHostException: No route to host", "jvm.no-route", "network-error"),
]


@pytest.mark.parametrize(("line", "signature", "failure_type"), BEST, ids=[b[1] for b in BEST])
def test_specific_beats_generic(line: str, signature: str, failure_type: str) -> None:
    best = readings(line)[0]
    assert (best.id, best.failure_type) == (signature, failure_type)


def test_no_tie_decides_the_type_of_a_line() -> None:
    """Where two roots of the same weight fire, they must agree: order in the files must not choose the diagnosis."""
    for line, *_ in BEST:
        found = [s for s in readings(line) if s.role == "root"]
        assert len({s.failure_type for s in found if s.weight == found[0].weight}) <= 1, (line, [s.id for s in found])


# ------------------------------------------------------------------------------------------------ prefixes
PREFIXES = [
    "",
    "[rank3]: ",
    "[rank3]:",
    " 17: ",
    "(WorkerDict pid=4123) ",
    "(main_task pid=4123, ip=10.0.0.7) ",
    "2024-03-04 05:06:07,890 ",
    "[2024-03-04 05:06:07] ",
    "2024-09-01T10:00:00.123456789Z stderr F ",
    "worker-1: ",
    "[default0]:",
    "[1,3]<stderr>:",
    "rank #0: ",
    " 12%|#2        | 12/100 [00:10<01:28,  1.20it/s]",
    "    ",
]
CLASSES = {
    "AttributeError": "attribute-error",
    "AssertionError": "assertion-error",
    "ValueError": "value-error",
    "ZeroDivisionError": "zero-division-error",
    "FileNotFoundError": "file-not-found",
    "OSError": "os-error",
    "TypeError": "type-error",
    "NameError": "name-error",
    "PermissionError": "permission-error",
    "ModuleNotFoundError": "import-error",
    "KeyError": "key-error",
    "SyntaxError": "syntax-error",
    "subprocess.CalledProcessError": "called-process-error",
    "IndexError": "index-error",
    "RuntimeError": "runtime-error",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_exception_keeps_its_type_behind_any_prefix(prefix: str) -> None:
    for name, failure_type in CLASSES.items():
        for line in (f"{prefix}{name}: some message", f"{prefix}{name}"):
            assert [s.failure_type for s in readings(line)][:1] == [failure_type], line


@pytest.mark.parametrize("name", CLASSES)
def test_echoed_code_is_no_exception(name: str) -> None:
    code = (
        f"    raise {name}('bad')",
        f"    except {name}:",
        f"    except {name} as error:",
        f"  with pytest.raises({name}):",
    )
    assert [line for line in code if roots(line)] == []


# ------------------------------------------------------------------------------------------------ roles
CONSEQUENCES = [
    "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600093 milliseconds",
    "[E ProcessGroupNCCL.cpp:489] To avoid data inconsistency, we are taking the entire process down.",
    "[F ProcessGroupNCCL.cpp:1] [Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
    "[rank3]: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.",
    "[rank3]: torch.distributed.DistNetworkError: Connection reset by peer",
    "RuntimeError: [1] is setting up NCCL communicator, but store->get('0') got error: Socket Timeout",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:3126",
    "RuntimeError: NCCL communicator was aborted on rank 3.",
    "RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly",
    "[rank2]: RuntimeError: One of the subprocesses has abruptly died during map operation.",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "[rank1]: ConnectionResetError: [Errno 104] Connection reset by peer",
    "[rank1]: EOFError",
    "E0101 api.py:833] failed (exitcode: -6) local_rank: 1 (pid: 5) of binary: /usr/bin/python",
    "E0101 api.py:833] failed (exitcode: -9) local_rank: 1 (pid: 5) of binary: /usr/bin/python",
    "E0101 api.py:833] failed (exitcode: -11) local_rank: 1 (pid: 5) of binary: /usr/bin/python",
    "E0101 api.py:833] failed (exitcode: 1) local_rank: 1 (pid: 5) of binary: /usr/bin/python",
    "  exitcode  : 1 (pid: 5)",
    "  traceback : Signal 9 (SIGKILL) received by PID 5",
    "Root Cause (first observed failure):",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "W0101 api.py:858] Sending process 5 closing signal SIGTERM",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 5 got signal: 15",
    "Received 15 death signal, shutting down workers",
    "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
    "*** SIGTERM received at time=1765654651 on cpu 105 ***",
    "Main process received SIGTERM, exiting",
    "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 12",
    "[ERROR] [launch.py:321:sigkill_handler] ['python'] exits with return code = -9",
    "srun: error: n1: task 3: Exited with exit code 1",
    "srun: error: n1: tasks 0-3: Killed",
    "srun: error: n2: task 3: Aborted (core dumped)",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TASK FAILURE ***",
    "slurmstepd: error: container_p_join: open failed for /var/tmp/n1/7/.ns: No such file or directory",
    "Killed",
    "Aborted (core dumped)",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "command terminated with exit code 137",
    "Warning  BackOff  2m  kubelet  Back-off restarting failed container",
    "ray.exceptions.RayTaskError(KeyError): ray::main() (pid=3, ip=10.0.0.7)",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "Terminating process because the JAX distributed service detected fatal errors.",
    "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: Socket closed",
    "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: x. Timed out task names:",
    "tensorflow.python.framework.errors_impl.UnavailableError: Connection reset by peer",
    "17/06/09 ERROR CoarseGrainedExecutorBackend: RECEIVED SIGNAL TERM",
    "ExecutorLostFailure (executor 3 exited unrelated to the running tasks) Reason: worker lost",
    "wandb: Waiting for W&B process to finish... (failed 1). Press Control-C to abort syncing.",
]


@pytest.mark.parametrize("line", CONSEQUENCES)
def test_a_consequence_is_known_and_never_a_root(line: str) -> None:
    assert readings(line), "no signature knows it"
    assert roots(line) == []


NOT_EVIDENCE = [
    '    raise RuntimeError("The server socket has failed to listen on any local network address")',
    "        raise ValueError('Asking to pad but the tokenizer does not have a padding token.')",
    '    assert os.path.exists(path), "One or both of the .idx and .bin files cannot be found"',
    '            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from e',
    "except torch.cuda.OutOfMemoryError:",
    "from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError",
    "import botocore.exceptions",
    "        ValueError: If the input is empty.",
    "    except oauthlib.oauth2.rfc6749.errors.InvalidClientIdError:",
    "    except (OSError, zlib.error):",
    '    ERR_IMAGE_PULL = "ErrImagePull"',
    "  ignore_errors .................... True",
    "  check_for_nan_in_loss_and_grad ... True",
    "  exit_on_missing_checkpoint ....... False",
    "[INFO] [config.py:1003:print]   checkpoint_tag_validation_fail  False",
    "usage: train.py [-h] [--lr LR] [--local-rank LOCAL_RANK]",
    "tests: 200 passed, errors: 0, failures: 0",
    "{'loss': 2.31, 'grad_norm': 1.2, 'error_rate': 0.0}",
    " iteration 2/ 1000 | lm loss: 1.28E+01 | number of skipped iterations: 0 | number of nan iterations: 0 |",
    "best_val_loss: inf",
    "Epoch[0] Batch [0-20] Speed: 113783.59 samples/sec accuracy=nan",
    "Alexius is killed. The Elder one arrives, terminated by nobody.",
    "It was a permission he denied himself; no space left for doubt.",
    "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
    "Requirement already satisfied: protobuf<=3.20.3 in /opt/env/lib/python3.10/site-packages",
    "n1:77:80 [0] NCCL INFO dlvsym failed on mlx5dv_x - /lib/libmlx5.so: undefined symbol: mlx5dv_x, version MLX5_1.25",
    "n1:77:80 [0] NCCL INFO [Service thread] Connection closed by localRank 0",
    "#SBATCH --time=24:00:00 --requeue --signal=B:USR1@120",
    "+ export NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=480",
    "E tensorflow/stream_executor/cuda/cuda_driver.cc:828] failed to allocate 14.57G (15648413952 bytes) "
    "from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "W tensorflow/x/dso_loader.cc:55] Could not load dynamic library 'libnvinfer.so.6'; dlerror: libnvinfer.so.6: "
    "cannot open shared object file: No such file or directory",
    "INFO:jax._src.xla_bridge:925: Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "[W socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not "
    "supported by protocol).",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.",
    "DiskPressure     False   KubeletHasNoDiskPressure     kubelet has no disk pressure",
    "17/06/09 20:11:11 INFO storage.BlockManager: Found block rdd_42_32 locally",
    "Process finished with exit code 0",
]


@pytest.mark.parametrize("line", NOT_EVIDENCE)
def test_code_prose_and_routine_name_no_failure(line: str) -> None:
    assert [s.id for s in readings(line) if s.role in ("root", "cascade")] == []


# ------------------------------------------------------------------------------------------------ outcomes, coverage
ENDS = [
    "[2025-01-02 16:15:22,896] [INFO] [launch.py:351:main] Process 9 exits successfully.",
    ':::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "success"}}',
    "exiting program at iteration 500",
    "`Trainer.fit` stopped: `max_steps=100` reached.",
    "{'train_runtime': 12.5, 'train_loss': 2.0}",
    "Training completed.",
    "INFO ApplicationMaster: Final app status: SUCCEEDED, exitCode: 0",
]


@pytest.mark.parametrize("line", ENDS)
def test_a_good_end_is_context_and_healthy(line: str) -> None:
    best = readings(line)[0]
    assert (best.role, best.outcome, best.failure_type) == ("context", "healthy", "healthy")
    assert best.id.startswith("end.")


def test_end_markers_never_name_a_failure() -> None:
    ends = [s for s in kb.signatures() if s.id.startswith("end.")]
    assert ends
    assert {(s.role, s.outcome, s.failure_type, s.root_cause_class) for s in ends} == {
        ("context", "healthy", "healthy", "none")
    }


def test_scheduler_and_user_ends_are_interruptions() -> None:
    types = {"time-limit", "preempted", "cancelled"}
    wrong = [
        s.id for s in kb.signatures() if s.role == "root" and (s.failure_type in types) != (s.outcome == "interrupted")
    ]
    assert wrong == []


SACCT = {
    "4242|train|OUT_OF_MEMORY|0:125|gpu01": "host-out-of-memory",
    "4242|train|NODE_FAIL|0:0|gpu01": "node-failure",
    "4242|train|TIMEOUT|0:0|gpu01": "time-limit",
    "4242|train|PREEMPTED|0:0|gpu01": "preempted",
    "4242|train|CANCELLED by 1001|0:0|gpu01": "cancelled",
    "4242|train|FAILED|1:0|gpu01": "unknown",
    "4242|train|COMPLETED|0:0|gpu01": "healthy",
    "4242.batch      batch               OUT_OF_ME+    0:125": "host-out-of-memory",
    "4242            train    gpu           TIMEOUT      0:0": "time-limit",
}


@pytest.mark.parametrize(("row", "failure_type"), SACCT.items())
def test_accounting_states(row: str, failure_type: str) -> None:
    assert readings(row, "sacct")[0].failure_type == failure_type


GROUPS = [
    (
        "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600153 milliseconds before timing out.",
        {"rank": "5", "seq": "12", "op": "ALLREDUCE", "elapsed_ms": "600153"},
    ),
    ("srun: error: gpu-02: task 4: Exited with exit code 7", {"node": "gpu-02", "rank": "4", "code": "7"}),
    ("srun: error: gpu-02: tasks 0-7: Exited with exit code 1", {"node": "gpu-02", "code": "1"}),
    (
        "api.py:833] failed (exitcode: -9) local_rank: 2 (pid: 36) of binary: x",
        {"code": "-9", "local_rank": "2", "pid": "36"},
    ),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/data/a b.bin'", {"path": "/data/a b.bin"}),
    (
        "AssertionError: Rank 5: found NaN in local grad norm. Device: 3, node: n9",
        {"rank": "5", "gpu": "3", "node": "n9"},
    ),
    ("rank #1: [x/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:30126", {"peer": "10.0.0.2"}),
]


@pytest.mark.parametrize(("line", "groups"), GROUPS)
def test_what_a_line_names_is_read(line: str, groups: dict[str, str]) -> None:
    best = matcher().match(LogLine("job.log", 1, line))[0]
    assert dict(best.groups) == groups


def test_a_reporting_node_is_not_the_failed_one() -> None:
    line = (
        "slurmstepd: error: *** STEP 1.0 ON n17 CANCELLED AT 2023-03-06T03:17:51 DUE TO NODE FAILURE, SEE SLURMCTLD LOG"
    )
    best = matcher().match(LogLine("job.log", 1, line))[0]
    assert (best.signature.id, best.groups.get("node")) == ("slurm.node-failure", None)


def test_every_failure_type_that_a_log_can_show_has_a_signature() -> None:
    assert set(kb.taxonomy().types) - {s.failure_type for s in kb.signatures()} == set()
    causes = {s.failure_type for s in kb.signatures() if s.role == "root"}
    assert set(kb.taxonomy().types) - causes <= {"healthy", "unknown", "nccl-timeout", "nccl-remote-error"}
