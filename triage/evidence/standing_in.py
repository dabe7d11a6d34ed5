"""In what a process stands, by the frames of its main thread: a collective, the data loader, a lock, its own code. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from triage.domain import Doing
from triage.evidence.dumps import Frame, Thread

_LIBRARY = re.compile(
    r"^<|^(?:torch|jax|numpy|deepspeed/comm|nccl|horovod|apex|mpi4py|accelerate|lightning|pytorch_lightning|ray)/"
    r"|site-packages|dist-packages|/lib(?:64)?/python\d|^lib[\w.+-]*\.so|\.so(?:\.\d+)*$|^kernel$|^_\w+\.c"
)
# Processes that are none of the ranks: launchers that wait for them, workers that serve them.
_HELPER = re.compile(
    r"torch/distributed/(?:elastic|launcher|run\.py|launch\.py)|accelerate/commands|deepspeed/launcher|torch/multiprocessing/spawn\.py:join"
    r"|torch/_inductor/compile_worker|multiprocessing/(?:resource_tracker|forkserver)|wandb/.*service|torch/utils/data/_utils/worker\.py"
    r"|horovod/runner|pt_main_thread"
)
# What waits for the end of a process that it started.
_FOR_CHILD = re.compile(
    r"multiprocessing/(?:popen_\w+|process)\.py:(?:wait|join|poll)$|subprocess\.py:(?:wait|communicate|_wait|_try_wait)$"
    r"|torch/multiprocessing/spawn\.py:join$|:_?_?(?:GI_+)?(?:libc_)?(?:os_)?(?:wait[34]|wait(?:p?id))$"
)
_FOREIGN_CALL = re.compile(r"ctypes|libffi|callproc\.c|_cffi")
_FRAMEWORK = re.compile(r"(?:megatron|deepspeed|nemo)/")  # whose own functions are told by their names
_WRAPPERS = frozenset(
    {"wrapper", "inner", "_call_impl", "_wrapped_call_impl", "decorate_context", "wrapped", "_fn", "__call__"}
)
# The most telling first. Looked for in `file:function` of the frames inside the program's own innermost one.
_DOING: tuple[tuple[Doing, re.Pattern[str]], ...] = (
    ("debugger", re.compile(r"(?:^|/)(?:i?pdb|bdb|pdbpp|debugpy\S*)\.py|pydevd")),
    (
        "rendezvous",
        re.compile(
            r"rendezvous|init_process_group|_store_based_barrier|_create_c10d_store|:initialize_distributed$|TCPStore|MPI_Init|ncclCommInit"
        ),
    ),
    (
        "point-to-point",
        re.compile(
            r"distributed\S*:(?:i?send|i?recv|batch_isend_irecv|send_\w+|recv_\w+)$|p2p_communication|pipe/p2p|:P?MPI_(?:Send|Recv|Ssend|Sendrecv)|ncclSend|ncclRecv"
        ),
    ),
    (
        "collective",
        re.compile(
            r"distributed_c10d\.py:|_fsdp_(?:collectives|param_group)\.py:|_functional_collectives|deepspeed/comm/|horovod/\S*mpi_ops|torch/distributed/nn/|:nccl[A-Z]\w+|:P?MPI_[A-Z]\w+|gloo::|c10d::|hccl\w*::|:Hccl\w+"
            r"|:(?:all_?reduce|all_?gather\w*|reduce_scatter\w*|all_to_all\w*|barrier|monitored_barrier|broadcast\w*|wait_for_everyone)$"
        ),
    ),
    (
        "data-loader",
        re.compile(r"torch/utils/data/dataloader\.py|iterator_ops\.py|_utils/(?:pin_memory|fetch)\.py|grain/"),
    ),
    (
        "gpu",
        re.compile(
            r"torch/cuda/\S*:(?:synchronize|wait|current_stream)|:(?:cuda|cu|hip|aclrt)\w*(?:Synchronize|Query)\w*|torch/npu\S*:synchronize|c10::cuda"
        ),
    ),
    ("sleep", re.compile(r":(?:time_sleep|pysleep|time\.sleep)$")),
    (
        "file",
        re.compile(
            r"logging/__init__\.py|torch/serialization\.py|tensorboard|:(?:_?_?libc_)?(?:fsync|fdatasync|pwrite\d*|write|__write|open|openat|__open\w*|pread\d*|"
            r"flush|fopen|ftruncate|statx?|getdents\w*)$|shutil\.py|moxing|fsspec|pyarrow/fs"
        ),
    ),
    (
        "lock",
        re.compile(
            r"threading\.py:(?:wait|acquire|join|_wait_for_tstate_lock|__enter__|result)|queue\.py:|multiprocessing/(?:synchronize|connection|queues|popen_fork)"
            r"|futex|pthread_(?:mutex|cond|rwlock)\w*|sem_(?:timed)?wait|PyThread_acquire_lock|filelock|concurrent/futures"
        ),
    ),
)
WAITING: frozenset[Doing] = frozenset({"collective", "point-to-point", "rendezvous", "gpu"})
_INTERPRETER = re.compile(
    r"libpython|callproc\.c|^python|libc[.-]|libc\.so|ld-linux|libpthread|_ctypes|libffi|Python/|Objects/|Modules/|sysdeps/|nptl/|csu/|^$|^kernel$"
)
_CEVAL = re.compile(
    r"^_?Py|^_start$|^main$|libc_start|clone3?$|start_thread$|thread_run$|pythonboot|cfunction_|method_vectorcall|slot_tp"
)
_INTERPRETS = re.compile(r"_?Py[A-Z_]|_PyEval|ruby_|rb_|Perl_|lua_|JavaMain|R_\w+eval")
_BELOW_MAIN = re.compile(r"_?_?libc_start|_?_?clone|start_thread$|_dl_|_exit$|exit$")
_SYSTEM_FILE = re.compile(r"\.so(?:\.\d+)*$|sysdeps/|nptl/|csu/|ld-linux|libc[.-]|vdso")


@dataclass(frozen=True, slots=True)
class Standing:
    """own: frames of the program's own code, the outermost first; all of them where none is; call: the library's function
    that the innermost of these is in, or None; seen: the line that tells most; for_child: it waits for the end of a process
    that it started; compiled: no frame is Python's."""

    own: tuple[Frame, ...]
    call: Frame | None
    doing: Doing
    helper: bool
    seen: Frame
    for_child: bool = False
    compiled: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """The same for processes that stand in the same place. Who waits stands in the very line; others move within a function."""
        frames = tuple((frame.function, frame.file) for frame in self.own)
        if self.doing in WAITING:
            return frames, self.own[-1].number if self.call else None, self.call_name, self.doing
        return frames, self.doing

    @property
    def call_name(self) -> str:
        return self.call.function if self.call else ""


def standing(thread: Thread) -> Standing | None:
    """Of the main thread of a process; None where it has no frame."""
    frames = [frame for frame in thread.frames if not _CEVAL.match(frame.function) or not frame.native]
    frames = frames or thread.frames
    if not frames:
        return None
    helper = any(_HELPER.search(_name(frame)) for frame in frames)
    own = [frame for frame in frames if not _library(frame)]
    compiled = all(frame.native for frame in frames)
    if compiled:
        frames, own = thread.frames, _of_program(thread.frames)
    inside = frames[: frames.index(own[0])] if own else frames
    told = [*inside, *(own[:1] if own and _FRAMEWORK.match(own[0].file) else [])]
    doing, call = _doing(told, frames)
    if compiled and own and inside and doing == "code":
        doing, call = "native", inside[-1]
    if own and call is own[0]:
        call = None
    shown = own or [frame for frame in frames if not frame.native] or frames
    for_child = any(_FOR_CHILD.search(_name(frame)) for frame in inside)
    seen = own[0] if own else call or frames[0]
    return Standing(tuple(reversed(shown)), call, doing, helper, seen, for_child, compiled)


def _of_program(frames: Sequence[Frame]) -> list[Frame]:
    """Of a program of C, C++ or Fortran those of its own: by their lines, or as no library's. Of an interpreter's stack none is."""
    if any(_INTERPRETS.match(frame.function) for frame in frames):
        return [frame for frame in frames if frame.number is not None and not _of_system(frame)]
    return [
        frame
        for frame in frames
        if frame.function not in ("??", "_start", "")
        and not _BELOW_MAIN.match(frame.function)
        and not _SYSTEM_FILE.search(frame.file)
        and not any(pattern.search(_name(frame)) for _, pattern in _DOING)
    ]


def _doing(inside: Sequence[Frame], frames: Sequence[Frame]) -> tuple[Doing, Frame | None]:
    """Of what the innermost own frame called; a data set's own code within the loader is the loader's."""
    for doing, pattern in _DOING:
        hits = [frame for frame in inside if pattern.search(_name(frame)) and not _wraps(frame)]
        if hits:
            return doing, hits[-1]
        if doing == "data-loader" and (hits := [frame for frame in frames if pattern.search(_name(frame))]):
            return doing, hits[-1]
    foreign = [frame for frame in inside if frame.native and not _INTERPRETER.search(frame.file)]
    called = [frame for frame in inside if frame.native and _FOREIGN_CALL.search(_name(frame))]
    if foreign or called:
        return "native", (foreign or list(inside))[-1] if foreign else inside[0]
    rest = [frame for frame in inside if not _wraps(frame) and not frame.native and _library(frame)]
    return "code", rest[-1] if rest else None


def _wraps(frame: Frame) -> bool:
    return frame.function.rpartition(".")[2] in _WRAPPERS


def _of_system(frame: Frame) -> bool:
    return bool(_INTERPRETER.search(frame.file)) or any(pattern.search(_name(frame)) for _, pattern in _DOING)


def _name(frame: Frame) -> str:
    """Python names a method with its class."""
    function = frame.function if frame.native else frame.function.rpartition(".")[2]
    return f"{frame.file}:{function}"


def is_own(frame: Frame) -> bool:
    """Is it of the program itself, and of no library?"""
    return not _library(frame)


def _library(frame: Frame) -> bool:
    module = frame.file.split("/", maxsplit=1)[0].removesuffix(".py")
    return frame.native or bool(_LIBRARY.search(frame.file)) or module in sys.stdlib_module_names
