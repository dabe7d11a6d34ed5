"""Programs that never get to train: arguments, syntax, modules, libraries, launchers."""

from __future__ import annotations

from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, finetune, fit, heat, pretrain


@fault("c181", "bad-arguments", "an option that the program does not know, on every rank", host="cn-112")
def bad_arguments(lab: Lab) -> Truth:
    pretrain(lab, 4)
    lab.torchrun(4, "pretrain.py --train-iters 500 --use-flash-attn --recompute-granularity full")
    lab.keep("job.log")
    return Truth(
        "failed", "argument-error", "config-error", FIX, (Hit("job.log", "error: unrecognized arguments"),), ranks=(0, 1, 2, 3),
        must_mention=(("--use-flash-attn", "--recompute-granularity", "unrecognized"),), must_not=CONSEQUENCES, why="--use-flash-attn and --recompute-granularity are unknown to this version.",
    )  # fmt: skip


@fault("c182", "bad-syntax", "an unclosed bracket in a module", split="test", host="node-b")
def bad_syntax(lab: Lab) -> Truth:
    fit(
        lab,
        (
            "network.py",
            '    layers = [nn.Linear(cfg["features"], width), nn.ReLU()]\n',
            '    layers = [nn.Linear(cfg["features"], width), nn.ReLU()\n',
        ),
    )
    lab.finish(*lab.start_ranks(4, "train.py config.yaml", "logs/rank{rank}.log"))
    lab.keep("logs", "logs")
    return Truth(
        "failed", "syntax-error", "software-bug", FIX, tuple(Hit(f"logs/rank{r}.log", "SyntaxError: ") for r in range(4)), ranks=(0, 1, 2, 3),
        must_mention=(("network.py", "'['", "SyntaxError"),), must_not=CONSEQUENCES, why="network.py line 6: '[' is not closed.",
    )  # fmt: skip


@fault("c183", "missing-module", "a package that is not installed", host="cn-112")
def missing_module(lab: Lab) -> Truth:
    pretrain(
        lab,
        2,
        (
            "core/model.py",
            "from torch import nn\n",
            "from torch import nn\n\nfrom apex.normalization import FusedLayerNorm\n",
        ),
        ("core/model.py", "self.final_layernorm = nn.LayerNorm(", "self.final_layernorm = FusedLayerNorm("),
    )
    lab.torchrun(2, "pretrain.py --train-iters 500")
    lab.keep("job.log")
    return Truth(
        "failed", "import-error", "dependency-failure", FIX, (Hit("job.log", "ModuleNotFoundError: No module named 'apex'"),), ranks=(0, 1),
        must_mention=(("apex",),), must_not=CONSEQUENCES, why="apex is not installed.",
    )  # fmt: skip


@fault(
    "c184",
    "undefined-symbol",
    "a compiled extension refers to a symbol that the library does not have",
    split="test",
    host="gpu04",
)
def undefined_symbol(lab: Lab) -> Truth:
    source = """#include <Python.h>
extern void _ZN3c104cuda14ExchangeDeviceEa(signed char device);
static PyObject *forward(PyObject *self, PyObject *args) { _ZN3c104cuda14ExchangeDeviceEa(0); Py_RETURN_NONE; }
static PyMethodDef methods[] = {{"forward", forward, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fused_rope_cuda", NULL, -1, methods};
PyMODINIT_FUNC PyInit_fused_rope_cuda(void) { return PyModule_Create(&module); }
"""
    finetune(
        lab,
        (
            "finetune.py",
            "from torch.utils.data import Dataset\n",
            "import torch\nfrom torch.utils.data import Dataset\n",
        ),
        ("finetune.py", "logger = logging", "import fused_rope_cuda  # noqa: E402\n\nlogger = logging"),
    )
    lab.write("fused_rope.c", source)
    include = lab.tool("python", "-c", "import sysconfig; print(sysconfig.get_paths()['include'])").strip()
    lab.tool(
        "gcc",
        "-shared",
        "-fPIC",
        f"-I{include}",
        "-I/opt/python/include/python3.11",
        "-Wl,-z,now",
        "-o",
        "fused_rope_cuda.cpython-311-x86_64-linux-gnu.so",
        "fused_rope.c",
    )
    lab.torchrun(2, "finetune.py", "train.log")
    lab.keep("train.log")
    return Truth(
        "failed", "version-mismatch", "dependency-failure", FIX, (Hit("train.log", "undefined symbol: _ZN3c104cuda14ExchangeDeviceEa"),), also_accept=("import-error",), ranks=(0, 1),
        must_mention=(("fused_rope_cuda", "undefined symbol"),), must_not=CONSEQUENCES, why="The extension was built against another build of torch (one with CUDA).",
    )  # fmt: skip


@fault("c185", "missing-library", "an MPI program without the library of its module", host="cn-112")
def missing_library(lab: Lab) -> Truth:
    heat(lab)
    lab.write("solver/stub.c", "int petsc_version(void) { return 320; }\n")
    lab.tool(
        "gcc",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libpetsc_real.so.3.20",
        "-o",
        "solver/libpetsc_real.so.3.20",
        "solver/stub.c",
    )
    lab.tool(
        "bash", "-c", "mpicc -O1 -o heat2d heat.c -lm -Wl,--no-as-needed solver/libpetsc_real.so.3.20 && rm -r solver"
    )
    lab.start("exec mpirun --oversubscribe -np 4 ./heat2d heat.in", "heat.out").wait()
    lab.keep("heat.out")
    return Truth(
        "failed", "version-mismatch", "config-error", FIX, (Hit("heat.out", "error while loading shared libraries: libpetsc_real.so.3.20"),), also_accept=("file-not-found", "import-error", "launch-failure"),
        must_mention=(("libpetsc_real.so.3.20",),), must_not=("native-crash", *CONSEQUENCES), why="The module that provides libpetsc is not loaded.",
    )  # fmt: skip


@fault("c186", "mpi-slots", "more ranks than slots", split="test", host="cn-112")
def mpi_slots(lab: Lab) -> Truth:
    heat(lab)
    lab.start("exec mpirun -np 64 ./heat2d heat.in", "heat.out").wait()
    lab.keep("heat.out")
    return Truth(
        "failed", "launch-failure", "config-error", FIX, (Hit("heat.out", "There are not enough slots available"),), also_accept=("argument-error",),
        must_mention=(("slots",),), must_not=("native-crash", *CONSEQUENCES), why="64 ranks on a host of two cores without --oversubscribe.",
    )  # fmt: skip


@fault(
    "c187", "mpi-bad-input", "a wrong keyword in the input file: every rank calls MPI_Abort", "cascade", host="cn-112"
)
def mpi_bad_input(lab: Lab) -> Truth:
    heat(lab, timestep="1e-7")
    lab.start("exec mpirun --oversubscribe -np 8 ./heat2d heat.in", "heat.out").wait()
    lab.keep("heat.out")
    return Truth(
        "failed", "argument-error", "config-error", FIX, (Hit("heat.out", "unknown keyword 'timestep' in heat.in"),),
        must_mention=(("timestep",),), must_not=("native-crash", *CONSEQUENCES), why="heat.in says `timestep`; the program knows `dt`.",
    )  # fmt: skip


@fault("c188", "bad-config-file", "the configuration is no valid YAML", host="node-b")
def bad_config(lab: Lab) -> Truth:
    fit(lab)
    text = lab.write("config.yaml", "") and ""
    lab.write(
        "config.yaml",
        text
        + "seed: 7\ndata: /mnt/data/digits\nout: /home/user/run/output\nper_shard: 256\nfeatures: 64\nclasses: 10\nwidth: 128\n depth: 3\nbatch: 16\nworkers: 2\n",
    )
    lab.torchrun(2, "train.py config.yaml")
    lab.keep("job.log")
    return Truth(
        "failed", "argument-error", "config-error", FIX, (Hit("job.log", "yaml.scanner.ScannerError"), Hit("job.log", 'in "<unicode string>", line 8')), also_accept=("value-error", "syntax-error", "runtime-error"), ranks=(0, 1),
        must_mention=(("YAML", "config.yaml", "mapping values"),), must_not=CONSEQUENCES, why="Line 8 of config.yaml is indented by one blank.",
    )  # fmt: skip
