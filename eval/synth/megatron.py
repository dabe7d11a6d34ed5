"""Megatron-LM and DeepSpeed: what they print when all is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synth.kit import Case, Curve

_ARGS = {
    "accumulate_allreduce_grads_in_fp32": "True", "adam_beta1": "0.9", "adam_beta2": "0.95", "adam_eps": "1e-08", "add_bias_linear": "False",
    "apply_query_key_layer_scaling": "False", "apply_residual_connection_post_layernorm": "False", "attention_dropout": "0.0",
    "attention_softmax_in_fp32": "False", "barrier_with_L1_time": "True", "bf16": "True", "bias_gelu_fusion": "False",
    "check_for_nan_in_loss_and_grad": "True", "clip_grad": "1.0", "clone_scatter_output_in_embedding": "True", "data_cache_path": "None",
    "data_parallel_random_init": "False", "dataloader_type": "single", "ddp_timeout_minutes": "10", "decoder_num_layers": "None",
    "distributed_backend": "nccl", "distributed_timeout_minutes": "10", "embedding_path": "None", "empty_unused_memory_level": "0",
    "end_weight_decay": "0.1", "eod_mask_loss": "False", "error_injection_rate": "0", "error_injection_type": "transient_error",
    "eval_interval": "1000", "eval_iters": "10", "exit_duration_in_mins": "None", "exit_interval": "None", "exit_on_missing_checkpoint": "False",
    "exit_signal_handler": "False", "finetune": "False", "fp16": "False", "fp32_residual_connection": "False", "global_batch_size": "1024",
    "gradient_accumulation_fusion": "True", "hidden_dropout": "0.0", "hidden_size": "4096", "hysteresis": "2", "ffn_hidden_size": "11008",
    "inference_max_seq_length": "2560", "init_method_std": "0.02", "initial_loss_scale": "4294967296", "kv_channels": "128",
    "layernorm_epsilon": "1e-05", "lazy_mpu_init": "None", "load": "None", "log_interval": "1", "log_memory_to_tensorboard": "False",
    "log_timers_to_tensorboard": "False", "loss_scale": "None", "loss_scale_window": "1000", "lr": "0.0003", "lr_decay_style": "cosine",
    "make_vocab_size_divisible_by": "128", "manual_gc": "False", "masked_softmax_fusion": "False", "max_position_embeddings": "4096",
    "micro_batch_size": "1", "min_loss_scale": "1.0", "min_lr": "3e-05", "mmap_bin_files": "True", "no_load_optim": "None",
    "no_persist_layer_norm": "False", "num_attention_heads": "32", "num_layers": "32", "num_workers": "2", "optimizer": "adam",
    "overlap_grad_reduce": "True", "override_opt_param_scheduler": "False", "params_dtype": "torch.bfloat16", "patch_dim": "16",
    "pipeline_model_parallel_size": "1", "position_embedding_type": "rope", "rank": "0", "recompute_granularity": "None",
    "rerun_mode": "disabled", "retro_add_retriever": "False", "save_interval": "500", "seed": "1234", "seq_length": "4096",
    "sequence_parallel": "True", "skip_train": "False", "split": "99,1,0", "tensor_model_parallel_size": "1", "timing_log_level": "0",
    "train_iters": "500000", "transformer_impl": "transformer_engine", "use_checkpoint_args": "False", "use_flash_attn": "True",
    "use_distributed_optimizer": "True", "untie_embeddings_and_output_weights": "True", "vocab_file": "None", "weight_decay": "0.1",
    "world_size": "32",
}  # fmt: skip


def arguments(args: Mapping[str, str], head: str = "") -> list[str]:
    """The dump of arguments; args override and extend the usual ones."""
    merged = {**_ARGS, **args}
    rows = [f"  {k} {'.' * max(1, 47 - len(k))} {v}" for k, v in merged.items()]
    rows.sort(key=str.lower)
    return [
        head + "------------------------ arguments ------------------------",
        *(head + r for r in rows),
        head + "-------------------- end of arguments ---------------------",
    ]


def startup(
    c: Case, *, tp: int, pp: int, params: int, micro: int, vocab: int, data: str, load: str = "", at: int = 0
) -> list[str]:
    c.tick(20, 60)
    out = [
        f"setting number of micro-batches to constant {micro}",
        "> building Llama2Tokenizer tokenizer ...",
        f" > padded vocab (size: {vocab}) with {-vocab % (128 * tp)} dummy tokens (new size: {vocab + -vocab % (128 * tp)})",
        "> initializing torch distributed ...",
        f"> initialized tensor model parallel with size {tp}",
        f"> initialized pipeline model parallel with size {pp}",
        "> setting random seeds to 1234 ...",
        "> compiling dataset index builder ...",
        "make: Entering directory '/workspace/Megatron-LM/megatron/core/datasets'",
        "make: Nothing to be done for 'default'.",
        "make: Leaving directory '/workspace/Megatron-LM/megatron/core/datasets'",
        f">>> done with dataset index builder. Compilation time: {c.f(0.03, 0.2):.3f} seconds",
        "> compiling and loading fused kernels ...",
        f">>> done with compiling and loading fused kernels. Compilation time: {c.f(2, 9):.3f} seconds",
        f"time to initialize megatron (seconds): {c.f(14, 90):.3f}",
        f"[after megatron is initialized] datetime: {c.t()} ",
        "building GPT model ...",
    ]
    out += [
        f" > number of parameters on (tensor, pipeline) model parallel rank ({t}, {p}): {params}"
        for p in range(pp)
        for t in range(tp)
    ]
    out.append("> learning rate decay style: cosine")
    c.tick(10, 50)
    if load:
        out += [
            f" loading checkpoint from {load} at iteration {at}",
            "could not find arguments in the checkpoint ..." if c.rng.random() < 0.3 else " checkpoint version 3.0",
            f"  successfully loaded checkpoint from {load} [ t 0, p 0 ] at iteration {at}",
            f"(min, max) time across ranks (ms):\n    load-checkpoint ................................: ({c.f(21000, 22000):.2f}, {c.f(22000, 23000):.2f})",
        ]
        c.tick(20, 60)
    out += [
        f"[after model, optimizer, and learning rate scheduler are built] datetime: {c.t()} ",
        "> building train, validation, and test datasets ...",
        " > datasets target sizes (minimum size):",
        f"    train:      {c.n(50, 500) * 1024000}",
        f"    validation: {c.n(50, 500) * 1024}",
        f"    test:       {c.n(5, 20) * 1024}",
        f"> building train, validation, and test datasets for GPT ...\n > loading indexed mapping from {data}_train_indexmap_doc_idx.npy\n"
        f" > loading indexed mapping from {data}_train_indexmap_sample_idx.npy\n > loading indexed mapping from {data}_train_indexmap_shuffle_idx.npy",
        f"    loaded indexed file in {c.f(0.002, 0.09):.3f} seconds",
        f"    total number of samples: {c.n(10000000, 90000000)}",
        "    total number of epochs: 1",
        "> finished creating GPT datasets ...",
        f"[after dataloaders are built] datetime: {c.t()} ",
        "done with setup ...",
        "(min, max) time across ranks (ms):",
        f"    model-and-optimizer-setup ......................: ({c.f(8000, 9000):.2f}, {c.f(9000, 9900):.2f})",
        f"    train/valid/test-data-iterators-setup ..........: ({c.f(900, 1000):.2f}, {c.f(1000, 2900):.2f})",
        "training ...",
        f"[before the start of training step] datetime: {c.t()} ",
    ]
    return out


def steps(
    c: Case, first: int, last: int, *, total: int, gbs: int, sec: float, loss: Curve, every: int = 1, lr: float = 3e-4, core: bool = True,
    scale: str = "1.0", tflops: float = 0.0, head: str = "", save: tuple[int, str] | None = None, grad: float = 0.3,
) -> list[str]:  # fmt: skip
    """Iteration lines first..last; save: (interval, folder) adds the lines of checkpoints."""
    out = []
    for i in range(first, last + 1, every):
        ms = c.jitter(sec, 0.008) * 1000
        c.tick(ms * every / 1000)
        rate = lr * min(1.0, i / 2000)
        when = f" [{c.t()}]" if core else ""
        tf = f" throughput per GPU (TFLOP/s/GPU): {c.jitter(tflops, 0.008):.1f} |" if tflops else ""
        e = f"{rate:.6E}" if core else f"{rate:.3E}"
        out.append(
            f"{head}{when} iteration {i:8d}/{total:8d} | consumed samples: {i * gbs:12d} | elapsed time per iteration (ms): {ms:.1f} |{tf} "
            f"learning rate: {e} | global batch size: {gbs:5d} | lm loss: {loss(i):.6E} | loss scale: {scale} | grad norm: {c.jitter(grad, 0.1):.3f} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
        if save and i % save[0] == 0:
            out += saved(c, i, save[1], head)
    return out


def saved(c: Case, step: int, folder: str, head: str = "") -> list[str]:
    out = [f"{head}saving checkpoint at iteration {step:7d} to {folder} in torch_dist format"]
    ms = c.f(9000, 30000)
    c.tick(ms / 1000)
    return [
        *out,
        f"{head}  successfully saved checkpoint from iteration {step:7d} to {folder} [ t 1/1, p 1/1 ]",
        f"{head}(min, max) time across ranks (ms):",
        f"{head}    save-checkpoint ................................: ({ms:.2f}, {ms + c.f(1, 90):.2f})",
    ]


def ds(c: Case, text: str, where: str = "logging.py:96:log_dist", level: str = "INFO") -> str:
    return f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}] [{level}] [{where}] {text}"


def ds_start(c: Case, hosts: Sequence[str], per: int, script: str, args: str, version: str = "0.10.3") -> list[str]:
    c.tick(1, 3)
    world = {h: list(range(per)) for h in hosts}
    return [
        f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}] [INFO] [real_accelerator.py:158:get_accelerator] Setting ds_accelerator to cuda (auto detect)",
        ds(c, "0 NCCL_VERSION=2.18.3", "launch.py:138:main"),
        ds(c, f"WORLD INFO DICT: {world}".replace('"', "'"), "launch.py:145:main"),
        ds(c, f"nnodes={len(hosts)}, num_local_procs={per}, node_rank=0", "launch.py:151:main"),
        ds(c, f"dist_world_size={len(hosts) * per}", "launch.py:163:main"),
        ds(c, f"Setting CUDA_VISIBLE_DEVICES={','.join(str(i) for i in range(per))}", "launch.py:165:main"),
        ds(
            c,
            f"cmd = {c.site.split('/lib/python')[0]}/bin/python -u {script} --local_rank=0 {args}",
            "runner.py:570:main",
        ),
        ds(c, "cdb=None", "comm.py:637:init_distributed"),
        ds(c, "Initializing TorchBackend in DeepSpeed with backend nccl", "comm.py:668:init_distributed"),
        ds(c, f"[Rank 0] DeepSpeed info: version={version}, git-hash=unknown, git-branch=unknown"),
    ]


def ds_config(c: Case, stage: int, gas: int, micro: int, world: int, **more: str) -> list[str]:
    values = {
        "activation_checkpointing_config": '{\n    "partition_activations": false, \n    "contiguous_memory_optimization": false, \n    "cpu_checkpointing": false, '
        '\n    "number_checkpoints": null, \n    "synchronize_checkpoint_boundary": false, \n    "profile": false\n}',
        "aio_config": "{'block_size': 1048576, 'queue_depth': 8, 'thread_count': 1, 'single_submit': False, 'overlap_events': True}",
        "amp_enabled": "False", "bfloat16_enabled": "True", "checkpoint_parallel_write_pipeline": "False", "checkpoint_tag_validation_enabled": "True",
        "checkpoint_tag_validation_fail": "False", "communication_data_type": "None", "curriculum_enabled_legacy": "False", "dataloader_drop_last": "False",
        "disable_allgather": "False", "dump_state": "False", "eigenvalue_enabled": "False", "fp16_enabled": "False", "global_rank": "0",
        "gradient_accumulation_steps": str(gas), "gradient_clipping": "1.0", "load_universal_checkpoint": "False", "loss_scale": "1.0",
        "memory_breakdown": "False", "optimizer_name": "adamw", "pld_enabled": "False", "prescale_gradients": "False", "sparse_gradients_enabled": "False",
        "steps_per_print": "10", "train_batch_size": str(gas * micro * world), "train_micro_batch_size_per_gpu": str(micro), "use_node_local_storage": "False",
        "wall_clock_breakdown": "False", "weight_quantization_config": "None", "world_size": str(world), "zero_allow_untested_optimizer": "True",
        "zero_enabled": str(stage > 0), "zero_force_ds_cpu_optimizer": "True", "zero_optimization_stage": str(stage), **more,
    }  # fmt: skip
    rows = [ds(c, "DeepSpeedEngine configuration:", "config.py:967:print")]
    return rows + [ds(c, f"  {k} {'.' * max(1, 30 - len(k))} {v}", "config.py:971:print") for k, v in values.items()]


def ds_steps(
    c: Case,
    first: int,
    last: int,
    *,
    sec: float,
    loss: Curve,
    per: int,
    lr: float = 1e-5,
    every: int = 10,
    mem: float = 41.0,
) -> list[str]:
    out = []
    for i in range(first, last + 1, every):
        c.tick(c.jitter(sec, 0.02) * every)
        speed = per / sec
        out.append(
            ds(
                c,
                f"[Rank 0] step={i}, skipped=0, lr=[{c.jitter(lr, 0.001):.10f}, {lr:.10f}], mom=[(0.9, 0.95), (0.9, 0.95)]",
            )
        )
        out.append(
            ds(
                c, f"epoch=0/micro_step={i}/global_step={i}, RunningAvgSamplesPerSec={c.jitter(speed, 0.01):.12f}, CurrSamplesPerSec={c.jitter(speed):.12f}, "
                f"MemAllocated={mem:.2f}GB, MaxMemAllocated={c.jitter(mem * 1.4, 0.001):.2f}GB", "timer.py:199:stop",
            )
        )  # fmt: skip
        out.append(f"step {i} loss {loss(i):.4f}")
    return out


def ds_killed(c: Case, pids: Sequence[int], cmd: str, code: int) -> list[str]:
    """The end of a DeepSpeed launcher."""
    out = []
    for p in pids:
        c.tick(0.3, 1.4)
        out.append(ds(c, f"Killing subprocess {p}", "launch.py:315:sigkill_handler"))
    return [*out, ds(c, f"{cmd} exits with return code = {code}", "launch.py:321:sigkill_handler", "ERROR")]
