"""s105 to s108."""

from __future__ import annotations

from synth.frameworks import warning
from synth.kit import Case, case, pre, tb, weave


@case(
    "s107", "os-error", "software-bug", "fix-and-resubmit",
    source="after the report of parallel ranks that cannot open one result file because rank 0 holds it open for writing",
    why="Rank 0 opened surf.h5 for writing and still computes; ranks 1 to 15 open the same file for reading and get errno 11 from HDF5's lock. No server is at fault: close first, then read.",
    tags="misleading cascade storage", also="storage-error", also_cls="config-error", nodes="", gpus=16, mention=["lock|h5|hdf5"], must_not="permission-error file-not-found disk-full",
)  # fmt: skip
def s107(c: Case) -> None:
    c.start("2024-08-21 11:19:50")
    c.site, c.root = "/apps/python/3.10/lib/python3.10/site-packages", "/scratch/losscape"
    log = c.file("surface.log")
    log.add(
        "[1,0]<stdout>:16 MPI ranks, one GPU each",
        "[1,0]<stdout>:cal: setup_surface_file, writing directions to /scratch/losscape/vgg9_dir.h5",
        "[1,0]<stdout>:opened /scratch/losscape/vgg9_surf.h5 for writing (r+), filling 51 x 51 coordinates",
        e="for writing",
    )
    rows = [pre(f"[1,{r}]<stderr>:", tb(c, """
        plot_surface.py:306 <module> | crunch(surf_file, net, w, s, d, trainloader, 'train_loss', 'train_acc', comm, rank, args)
        plot_surface.py:121 crunch | f = h5py.File(surf_file, 'r')
        $S/h5py/_hl/files.py:564 __init__ | fid = make_fid(name, mode, userblock_size, fapl, fcpl, swmr=swmr)
        $S/h5py/_hl/files.py:232 make_fid | fid = h5f.open(name, flags, fapl=fapl)
        h5py/h5f.pyx:102 h5py.h5f.open
        """, "BlockingIOError: [Errno 11] Unable to synchronously open file (unable to lock file, errno = 11, error message = 'Resource temporarily unavailable')")) for r in range(1, 16)]  # fmt: skip
    log.add(weave(c.rng, rows, 6), e="errno = 11")
    log.add(
        "-" * 74,
        "Primary job  terminated normally, but 1 process returned",
        "a non-zero exit code. Per user-direction, the job has been aborted.",
        "-" * 74,
        "[1,0]<stdout>:evaluating 1/2601 loss 0.0021 acc 99.9",
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "the job to be terminated. The first process to do so was:",
        "",
        "  Process name: [[60771,1],7]",
        "  Exit code:    1",
    )


@case(
    "s108", "out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of an accelerator that reports a DMA hardware execution error which is exhausted memory",
    why="EL0004 on device 6 says that memory could not be allocated (61.9 of 62.4 GB in use two lines above); the 'DMA hardware execution error' 507013 is how the runtime words the failed copy.",
    tags="misleading hardware", also_cls="config-error", nodes="", ranks="6", gpus=8, mention=["memory|EL0004"], must_not="gpu-lost ecc-error node-failure host-out-of-memory",
)  # fmt: skip
def s108(c: Case) -> None:
    c.start("2025-09-17 04:50:02")
    c.site, c.root = "/usr/local/python3.11/lib/python3.11/site-packages", "/data/mindspeed-rl"
    log = c.file("npu_rl.txt")
    log.add(
        *[
            f"(WorkerDict pid={551 + r}) [INFO] 2025-09-17 04:50:1{r}: device {r} Ascend910B3, 62420 MB"
            for r in range(8)
        ],
        warning(c, 4, "torch_npu/utils/__init__.py"),
    )
    for s in range(1, 30):
        c.tick(9, 10)
        log.add(
            f"(TaskRunner pid=311) step:{s} - critic/score/mean:{c.f(0.1, 0.4):.3f} - actor/grad_norm:{c.f(0.2, 0.5):.3f} - perf/max_memory_reserved_gb:{55 + s * 0.235:.2f} - response_length/mean:{c.n(700, 2500)}"
        )
    log.add(
        "(WorkerDict pid=557) [WARNING] device 6: 61902 of 62420 MB in use before the weight copy of the rollout",
        e=True,
    )
    p = "(WorkerDict pid=557) "
    log.add(pre(p, tb(c, "mindspeed_rl/workers/rollout.py:288 wake_up | self.engine.load_weights(chunks)\n$S/torch_npu/npu/utils.py:72 synchronize | return torch_npu._C._npu_synchronize()",
        ["RuntimeError: synchronize:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:476 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507013", "[ERROR] 2025-09-17-04:55:13 (PID:557, Device:6, RankID:6) ERR00100 PTA call acl api failed", "[Error]: System Direct Memory Access (DMA) hardware execution error. ", "        Rectify the fault based on the error information in the ascend log.",
         "EL0004: [PID: 557] 2025-09-17-04:55:13.065.712 Failed to allocate memory.", "        Possible Cause: Available memory is insufficient.", "        Solution: Close applications not in use.", "        TraceBack (most recent call last):", "        rtMalloc execute failed, reason=[driver error:out of memory][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]"])), e="EL0004")  # fmt: skip
    log.marked[len(log.rows)] = log.rows[-1]
    log.add(
        "(TaskRunner pid=311) ray.exceptions.RayTaskError(RuntimeError): ray::WorkerDict.actor_rollout_generate_sequences() (pid=557, ip=10.170.22.4)",
        "(WorkerDict pid=551) [ERROR] HCCL(551,python3): task exec failed, remote rank[6] heartbeat lost [repeated 7x across cluster]",
    )
