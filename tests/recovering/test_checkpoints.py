"""Checkpoints as they lie on a disk: what is whole, what is not and why, and which one to go on from."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from triage.errors import InputError
from triage.recover.checkpoints.judging import FRESH, survey
from triage.recover.checkpoints.tree import Survey
from triage.recover.resume import resuming
from triage.recovering.disk import Disk

NOW = 2_000_000_000.0
# The .metadata that torch 2.13 wrote for two tensors in files of their own: __0_0.distcp of 1,961 bytes and __0_1.distcp of 1,577.
METADATA = zlib.decompress(
    base64.b85decode(
        "c-nna-)qxQ6wc_{xE~eSCiozN;IKp5wQEuOD09jP?aDR;5xLwXC%xCDNzA>O+d$BVDuesx^^fpx@}KeCG+ip9c?iil-}%n>oqO)*<sZK)R{p4M8K)j=`CQ19yO{*P<uUNil9)%bH33O|Dydet2J_GFdgqJ&q#J5eNGgH&+>_)6Xc9{wHM7*+Q;0;Io?rtyhQG^KlQd2sl^leD-<iQjWiUrJR5e$ql^ujJmEApztIe5e0V$^;zoL@IkydMD43dQOGR~wy)e96l^TF3seXOss(-s*V49Lr)<H7S&axmOKdT}^>g?Pux5mLKqS@0{+H?5aX%r7EVoz<^7kE(eri_V08XS8qao1cF=wc{WVAkpSS$8xNKp=x^Mu^ZORrJ1XiT+LQyrEHzuHbY<=?A|rIZ?v%oSW%hgc(#r08wK=<VK3slB_`+0)Or%qD1wyCPl?&go@&-*-Koa3n29gbma5O497aA|ly)k?he$J9Re2tFELEEs{KFp_dHmnq3U~<OQb?F+wN8rR9Y#T1cB-ck;@O@9NvLE7M%tvE6MBheBhxyBXpFhRPdjs&Q_NzBzK$G=jmnu|_H~hcGb8FO60x^~omxJq`6SFro5NjOIM)Sfr4zz^+)kq~<gQjLqge2Zkr9kLxU{QPMNSgjPJG8Kz3R8$kM%dR0k)uM%~U^n+V}e4!(Ou;^q|@EJJ6&q?KFGOy0qW*I&KeoSb#UcHw8mwPhvmA0pbGUr0sJ^MScgWomRWm##rk&KOKNA"
    )
)
DCP = {".metadata": METADATA, "__0_0.distcp": b"x" * 1961, "__0_1.distcp": b"x" * 1577}


def saved(path: Path, size: int = 9000, **told: object) -> Path:
    """A file as torch.save writes it: an archive with a pickle and data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(told))
        archive.writestr("archive/data/0", b"\1" * size)
    return path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size - 300])


def look(folder: Path, now: float = NOW) -> Survey:
    disk = Disk(folder)
    return survey(disk.files(), disk, now)


def why(found: Survey, step: int) -> str:
    return "; ".join(next(one for one in found.found if one.unit.step == step).problems)


def megatron(root: Path, step: int) -> Path:
    folder = root / f"iter_{step:07d}"
    for tensor in range(2):
        for stage in range(4):
            for name in ("model_optim_rng.pt", "distrib_optim.pt"):
                saved(folder / f"mp_rank_{tensor:02d}_{stage:03d}" / name)
    (root / "latest_checkpointed_iteration.txt").write_text(f"{step}")
    return folder


def deepspeed(root: Path, step: int, copies: int = 4) -> Path:
    folder = root / f"global_step{step}"
    for tensor in range(2):
        saved(folder / f"mp_rank_{tensor:02d}_model_states.pt", dp_world_size=copies)
        for copy in range(copies):
            saved(folder / f"bf16_zero_pp_rank_{copy}_mp_rank_{tensor:02d}_optim_states.pt")
    (root / "latest").write_text(f"global_step{step}")
    return folder


def dcp(root: Path, step: int) -> Path:
    folder = root / f"step-{step}"
    folder.mkdir(parents=True)
    for name, raw in DCP.items():
        (folder / name).write_bytes(raw)
    return folder


def safetensors(path: Path, size: int = 8000) -> Path:
    head = json.dumps(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    ).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * size)
    return path


def huggingface(root: Path, step: int) -> Path:
    folder = root / f"checkpoint-{step}"
    for name in ("optimizer.pt", "scheduler.pt", *(f"rng_state_{rank}.pth" for rank in range(4))):
        saved(folder / name)
    shards = [f"model-{n:05d}-of-00003.safetensors" for n in (1, 2, 3)]
    for shard in shards:
        safetensors(folder / shard)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {f"w{i}": s for i, s in enumerate(shards)}})
    )
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": []}))
    return folder


def lightning(root: Path, step: int) -> Path:
    return saved(root / f"epoch=1-step={step}.ckpt", global_step=step)


def orbax(root: Path, step: int) -> Path:
    folder = root / str(step)
    for name in (
        "_CHECKPOINT_METADATA",
        "default/_METADATA",
        "default/manifest.ocdbt",
        "default/d/0a1b",
        "default/ocdbt.process_0/manifest.ocdbt",
        "default/ocdbt.process_1/manifest.ocdbt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * 900)
    return folder


def accelerate(root: Path, step: int) -> Path:
    folder = root / f"step_{step}"
    for name in ("model.pt", "optimizer.bin", "scheduler.bin"):
        saved(folder / name)
    return folder


def one_file(root: Path, step: int) -> Path:
    return saved(root / f"model_epoch_{step}.pth")


Make = Callable[[Path, int], Path]
MAKERS: dict[str, Make] = {
    "Megatron": megatron,
    "DeepSpeed": deepspeed,
    "torch DCP": dcp,
    "Hugging Face": huggingface,
    "Lightning": lightning,
    "Orbax": orbax,
    "folder": accelerate,
    "file": one_file,
}


@pytest.mark.parametrize("layout", MAKERS)
def test_the_newest_whole_one_is_chosen(layout: str, tmp_path: Path) -> None:
    for step in (100, 200, 1000):
        MAKERS[layout](tmp_path / "run", step)
    found = look(tmp_path / "run")
    assert found.chosen is not None, found
    assert (found.chosen.unit.layout, found.chosen.unit.step) == (layout, 1000)
    assert [one.state for one in found.found] == ["complete", "not looked into", "not looked into"]
    assert not any(one.problems for one in found.found)
    assert not found.notes


@pytest.mark.parametrize("layout", MAKERS)
def test_one_checkpoint_alone_may_be_named_itself(layout: str, tmp_path: Path) -> None:
    folder = MAKERS[layout](tmp_path / "run", 700)
    found = look(folder)
    assert found.chosen is not None
    assert found.chosen.unit.step == 700


DAMAGE: Sequence[tuple[str, str, Callable[[Path], object], str]] = [
    (
        "Megatron",
        "a rank's folder is missing",
        lambda f: remove(f / "mp_rank_01_002"),
        "2 missing: mp_rank_01_002/distrib_optim.pt, mp_rank_01_002/model_optim_rng.pt",
    ),
    ("Megatron", "the last rank is missing", lambda f: remove(f / "mp_rank_01_003"), "mp_rank_01_003/distrib_optim.pt"),
    (
        "Megatron",
        "the last stage of all is missing",
        lambda f: [remove(f / f"mp_rank_0{t}_003") for t in (0, 1)],
        "4 missing that step 200 has",
    ),
    (
        "Megatron",
        "one rank has no optimizer",
        lambda f: (f / "mp_rank_00_001/distrib_optim.pt").unlink(),
        "1 missing: mp_rank_00_001/distrib_optim.pt",
    ),
    (
        "Megatron",
        "a file is empty",
        lambda f: (f / "mp_rank_00_001/model_optim_rng.pt").write_bytes(b""),
        "mp_rank_00_001/model_optim_rng.pt: empty",
    ),
    (
        "Megatron",
        "a file is cut",
        lambda f: cut(f / "mp_rank_00_001/model_optim_rng.pt"),
        "cut: the directory at the end of the archive",
    ),
    ("Megatron", "a file is much smaller", lambda f: saved(f / "mp_rank_00_001/distrib_optim.pt", 5000), "5,"),
    (
        "Megatron",
        "the tracker names the one before",
        lambda f: (f.parent / "latest_checkpointed_iteration.txt").write_text("200"),
        "still names 200",
    ),
    (
        "DeepSpeed",
        "a rank is missing",
        lambda f: (f / "bf16_zero_pp_rank_2_mp_rank_01_optim_states.pt").unlink(),
        "1 missing: bf16_zero_pp_rank_2_mp_rank_01",
    ),
    (
        "DeepSpeed",
        "the last rank is missing",
        lambda f: [(f / f"bf16_zero_pp_rank_3_mp_rank_0{t}_optim_states.pt").unlink() for t in (0, 1)],
        "optimizer states of 3 of 4 data-parallel ranks",
    ),
    (
        "DeepSpeed",
        "a model part is missing",
        lambda f: (f / "mp_rank_01_model_states.pt").unlink(),
        "1 missing: mp_rank_01_model_states.pt",
    ),
    (
        "DeepSpeed",
        "zeros stand where data should",
        lambda f: (f / "mp_rank_01_model_states.pt").write_bytes(b"\0" * 9300),
        "holds zeros",
    ),
    (
        "torch DCP",
        "a file is missing",
        lambda f: (f / "__0_1.distcp").unlink(),
        "1 missing of those that .metadata names: __0_1.distcp",
    ),
    (
        "torch DCP",
        "a file is cut",
        lambda f: (f / "__0_1.distcp").write_bytes(b"x" * 1500),
        "__0_1.distcp: shorter than .metadata says",
    ),
    (
        "torch DCP",
        "the metadata are not there yet",
        lambda f: (f / ".metadata").unlink(),
        "no .metadata, which is written last",
    ),
    (
        "Hugging Face",
        "a shard is missing",
        lambda f: (f / "model-00002-of-00003.safetensors").unlink(),
        "model-00002-of-00003.safetensors",
    ),
    (
        "Hugging Face",
        "a shard is cut",
        lambda f: cut(f / "model-00002-of-00003.safetensors"),
        "shorter than its head says",
    ),
    (
        "Hugging Face",
        "a rank's random state is missing",
        lambda f: (f / "rng_state_1.pth").unlink(),
        "1 missing: rng_state_1.pth",
    ),
    (
        "Hugging Face",
        "the last rank's random state is missing",
        lambda f: (f / "rng_state_3.pth").unlink(),
        "rng_state_3.pth",
    ),
    (
        "Hugging Face",
        "the state is not there yet",
        lambda f: (f / "trainer_state.json").unlink(),
        "no trainer_state.json",
    ),
    (
        "Hugging Face",
        "the state is cut",
        lambda f: (f / "trainer_state.json").write_text('{"global_s'),
        "trainer_state.json: cut",
    ),
    (
        "Hugging Face",
        "the state is of another step",
        lambda f: (f / "trainer_state.json").write_text('{"global_step": 9}'),
        "is of step 9",
    ),
    ("Hugging Face", "the optimizer is missing", lambda f: (f / "optimizer.pt").unlink(), "optimizer.pt"),
    (
        "Hugging Face",
        "the index names no files",
        lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "m.safetensors", "b": 5}}'),
        "model.safetensors.index.json: cut, or not",
    ),
    (
        "Hugging Face",
        "the head of a shard is odd",
        lambda f: odd_head(f / "model-00002-of-00003.safetensors"),
        "its head cannot be read",
    ),
    ("Lightning", "the file is cut", cut, "cut: the directory at the end of the archive"),
    ("Orbax", "not joined", lambda f: (f / "default/manifest.ocdbt").unlink(), "no default/manifest.ocdbt"),
    ("folder", "no state of the optimizer", lambda f: (f / "optimizer.bin").unlink(), "1 missing that step 200 has"),
    ("file", "cut", cut, "cut: the directory at the end of the archive"),
    ("Lightning", "the file is empty", lambda f: f.write_bytes(b""), "empty"),
]


def odd_head(path: Path) -> None:
    head = b'{"w": {"data_offsets": [0, "x"]}}'
    path.write_bytes((len(head).to_bytes(8, "little") + head).ljust(path.stat().st_size, b"\0"))


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize(("layout", "what", "damage", "said"), DAMAGE, ids=[f"{d[0]}: {d[1]}" for d in DAMAGE])
def test_a_damaged_one_is_told_and_the_one_before_it_chosen(
    layout: str, what: str, damage: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    for step in (100, 200):
        MAKERS[layout](tmp_path / "run", step)
    damage(MAKERS[layout](tmp_path / "run", 300))
    found = look(tmp_path / "run")
    assert said in why(found, 300)
    assert found.found[0].state == "incomplete"
    assert found.chosen is not None
    assert found.chosen.unit.step == 200
    assert look(tmp_path / "run", now=tmp_path.stat().st_mtime + FRESH / 2).found[0].state == "being written"


def test_a_tracker_that_names_a_broken_one_is_told(tmp_path: Path) -> None:
    megatron(tmp_path, 100)
    cut(megatron(tmp_path, 200) / "mp_rank_00_000/model_optim_rng.pt")
    found = look(tmp_path)
    assert found.chosen is not None
    assert found.notes == (
        "latest_checkpointed_iteration.txt names 200, which is incomplete: name step 100 when you resume",
    )
    assert resuming(found.chosen, "/ckpt/iter_0000100") == "--load /ckpt --ckpt-step 100"


@pytest.mark.parametrize(
    ("layout", "tracker", "holds", "said"),
    [
        ("Megatron", "latest_checkpointed_iteration.txt", b"12", "names 12, which is not there: write 1200 into it"),
        ("Megatron", "latest_checkpointed_iteration.txt", b"700", "any more, and the save of 1200 may not have ended"),
        ("Megatron", "latest_checkpointed_iteration.txt", b"", "is empty: Megatron reads it first and stops"),
        ("Megatron", "latest_checkpointed_iteration.txt", b"\0\xff", "write 1200 into it"),
        ("Megatron", "latest_checkpointed_iteration.txt", b"release", "says release"),
        ("DeepSpeed", "latest", b"global_step12", "names 12, which is not there: write global_step1200 into it"),
        ("DeepSpeed", "latest", b"global_st", "names global_st, which is not there: a resume without a tag fails"),
        ("DeepSpeed", "latest", b"", "is empty: a resume without a tag fails"),
    ],
)
def test_a_damaged_tracker_proves_nothing_and_is_told(
    layout: str, tracker: str, holds: bytes, said: str, tmp_path: Path
) -> None:
    for step in (100, 1200):
        MAKERS[layout](tmp_path, step)
    (tmp_path / tracker).write_bytes(holds)
    found = look(tmp_path)
    assert found.chosen is not None, found
    assert found.chosen.unit.step == 1200
    (note,) = found.notes
    assert said in note


def test_a_lost_tracker_of_megatron_is_told_where_its_folder_was_looked_at(tmp_path: Path) -> None:
    folder = megatron(tmp_path, 100)
    (tmp_path / "latest_checkpointed_iteration.txt").unlink()
    assert "is not there: some versions of Megatron then begin anew" in look(tmp_path).notes[0]
    assert look(folder).notes == ()


def test_a_tag_of_another_name_is_known(tmp_path: Path) -> None:
    deepspeed(tmp_path, 100).rename(tmp_path / "epoch-1")
    (tmp_path / "latest").write_text("epoch-1")
    found = look(tmp_path)
    assert found.chosen is not None
    assert found.notes == ()


def test_a_job_that_went_on_with_fewer_ranks_is_no_damage(tmp_path: Path) -> None:
    for step, copies in ((100, 4), (200, 4), (300, 2), (400, 2)):
        deepspeed(tmp_path, step, copies)
    found = look(tmp_path)
    assert found.chosen is not None
    assert found.chosen.unit.step == 400


def test_a_temporary_name_is_no_checkpoint(tmp_path: Path) -> None:
    huggingface(tmp_path, 100)
    huggingface(tmp_path, 200).rename(tmp_path / "tmp-checkpoint-200")
    found = look(tmp_path)
    assert "its save did not end" in why(found, 200)
    assert found.chosen is not None
    assert found.chosen.unit.step == 100


def test_the_step_of_a_file_without_one_in_its_name_is_read_inside(tmp_path: Path) -> None:
    lightning(tmp_path, 100)
    saved(tmp_path / "last.ckpt", global_step=150)
    found = look(tmp_path)
    assert found.chosen is not None
    assert found.chosen.unit.name.endswith("last.ckpt")


def test_weights_alone_are_said_to_be_that(tmp_path: Path) -> None:
    folder = huggingface(tmp_path, 100)
    (folder / "optimizer.pt").unlink()
    (folder / "scheduler.pt").unlink()
    found = look(tmp_path)
    assert found.chosen is not None
    assert "no optimizer state" in found.chosen.notes[0]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/triage-evil-ran",)


def test_nothing_in_a_pickle_is_run(tmp_path: Path) -> None:
    folder = dcp(tmp_path, 100)
    (folder / ".metadata").write_bytes(pickle.dumps(Evil()))
    saved(tmp_path / "last.ckpt", global_step=Evil())
    look(tmp_path)
    assert not Path("/tmp/triage-evil-ran").exists()


def test_links_that_lead_back_and_odd_files_do_no_harm(tmp_path: Path) -> None:
    folder = huggingface(tmp_path / "run", 100)
    (folder / "loop").symlink_to(tmp_path / "run")
    (folder / "gone.pt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe")
    (tmp_path / "run" / "last.ckpt").write_bytes(b"PK\3\4" + b"x" * 5000)
    (tmp_path / "run" / "checkpoint-200").mkdir()
    (tmp_path / "run" / "checkpoint-200" / "trainer_state.json").write_text("[" * 100_000)
    found = look(tmp_path / "run")
    assert found.chosen is not None
    assert found.chosen.unit.step == 100
    assert len(found.found) == 3


def test_a_folder_that_is_none_is_said() -> None:
    with pytest.raises(InputError, match="is no folder and no file"):
        Disk(Path("/nowhere"))


@pytest.mark.torch
def test_what_torch_itself_writes_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import torch.distributed.checkpoint as real

    real.save({"model": {"w": torch.ones(50, 50)}, "step": 7}, checkpoint_id=str(tmp_path / "dcp" / "step-7"))
    (tmp_path / "file").mkdir()
    torch.save({"global_step": 9, "state_dict": {"w": torch.ones(50, 50)}}, tmp_path / "file" / "last.ckpt")
    for folder, step in (("dcp", 7), ("file", None)):
        found = look(tmp_path / folder)
        assert found.chosen is not None
        assert found.chosen.unit.step == step
    assert Disk(tmp_path / "file").number("file/last.ckpt", "global_step") == 9
    (part,) = (tmp_path / "dcp" / "step-7").glob("*.distcp")
    part.write_bytes(part.read_bytes()[:-10])
    assert look(tmp_path / "dcp").chosen is None


def test_the_folder_of_deepspeed_in_that_of_hugging_face_is_called_after_its_step(tmp_path: Path) -> None:
    for step in (500, 1000):
        huggingface(tmp_path / "run", step)
        deepspeed(tmp_path / "run" / f"checkpoint-{step}", step)
    found = look(tmp_path / "run")
    assert found.chosen is not None and found.chosen.unit.step == 1000, found
    (tmp_path / "run/checkpoint-1000/global_step1000/bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt").unlink()
    (tmp_path / "run/checkpoint-1000/global_step1000/bf16_zero_pp_rank_3_mp_rank_01_optim_states.pt").unlink()
    found = look(tmp_path / "run")
    assert "2 missing that step 500 has" in why(found, 1000)
    assert found.chosen is not None and found.chosen.unit.step == 500


@pytest.mark.parametrize("name", ["ckpt.pt", "snapshot.pt", "model_last.pth", "latest.pth", "checkpoint.pth.tar"])
def test_a_file_that_is_written_over_and_over_is_a_checkpoint_without_a_step(name: str, tmp_path: Path) -> None:
    saved(tmp_path / "4711" / name)
    found = look(tmp_path / "4711")
    assert found.chosen is not None and found.chosen.unit.name == f"4711/{name}"
    assert found.chosen.unit.step is None


def test_the_number_of_a_job_is_no_step(tmp_path: Path) -> None:
    orbax(tmp_path / "4711", 100)
    accelerate(tmp_path / "4712", 200)
    assert {one.unit.step for one in look(tmp_path).found} == {100, 200}


def test_a_save_of_orbax_that_did_not_end_is_told(tmp_path: Path) -> None:
    orbax(tmp_path / "run", 100)
    orbax(tmp_path / "run", 200).rename(tmp_path / "run" / "200.orbax-checkpoint-tmp-17")
    found = look(tmp_path / "run")
    assert "did not end" in why(found, 200)
    assert found.chosen is not None and found.chosen.unit.step == 100
