"""Every format goes, what only looks like one stays; on real logs too."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.redact.formats import SECRETS
from triage.redact import LineRedactor, redact

HEX40 = "0123456789abcdef0123456789abcdef01234567"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
HARMLESS = f"""
loaded checkpoint /ckpt/step_1000.pt sha256={SHA256}
md5: 9e107d9d372bb6826bd81d3542a419d6
HEAD is now at {HEX40} fix loader
image nvcr.io/nvidia/pytorch@sha256:{SHA256}
GPU-8f6d6b2e-1c1e-4e4d-9f6a-0c9a1e2b3c4d is lost
botocore.exceptions.NoCredentialsError: Unable to locate credentials
config: lr=0.1, key=layers.0.attn.weight, value=3
missing key(s) in state_dict: "layers.0.weight_scale_1"
KeyError: 'blocks.11.attn.q_proj.lora_A.default.weight'
tokenizer: GPT2TokenizerFast vocab 50257
tokens per second: 12345.6
token count 4096
consumed tokens: 13107200000
token_embedding.weight: torch.float32
token_file=/var/run/token1234
--tokenizer-path /data/tok1234 --pad-token-id 128001 --num-tokens 4096
eval/token_acc: 0.93456789
pass rate: 0.5
pass@1: 0.31
pass: 12, fail: 3
first pass=completed2
bypass=enabled01
tensor([-1.2e-05, 3.4e-02])
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ
hex id 0xdeadbeefcafebabe0123456789abcdef
NCCL INFO comm 0x55d0c8a3b2e0 rank 3 nranks 8 commId 0x2d8f6e1a7b3c4d5e
nccl unique id 5a1b2c3d4e5f60718293a4b5c6d7e8f9
compile cache hit: key=fx_{SHA256}
debug1: identity added using key SHA256:Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1A
Loaded X.509 cert 'Red Hat Enterprise Linux kernel signing key: {HEX40}'
Permission denied (publickey,password).
Access denied for user 'bob'@'db' (using password: YES)
Password authentication is disabled
the password is required here
the password is too short
with password file as fallback
AuthInfo=/var/run/munge/munge.socket.2
jwt_key=/var/spool/slurm/jwt_hs256.key
munge: Invalid credential format
"auth": "kerberos5"
pwd: /scratch/bob/run1
PWD=/scratch/bob/run1
HTTP 403 for https://huggingface.co/meta-llama/Llama-2-7b-hf/resolve/main/config.json
http://user@10.0.0.1:8080/x
mysql -P 3306 -h db
sort_key=timestamp_us partition_key=2026010112
public_key={SHA256}
secret_name: hf-secret-1
asia-northeast1-docker.pkg.dev/x/y
aws ec2 i-0123456789abcdef0 terminated
wandb: Currently logged in as: bob
SGD.momentum_buffer.state
"policy": "roundrobin2"
?page=2&sort=key
authorization: denied for bob
link/ether 02:42:ac:11:00:02
node123456:AArch64-linux-gnu-system-information-table
hf_transfer_download_of_large_files
""".strip().split("\n")


def by_line(text: str) -> str:
    secrets = LineRedactor()
    return "\n".join(secrets.redact(line, number) for number, line in enumerate(text.split("\n"), 1))


def test_there_are_enough_formats() -> None:
    assert len(SECRETS) >= 160


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("taken_out", [by_line, redact])
def test_no_format_passes(name: str, taken_out) -> None:
    text, secrets = SECRETS[name]
    hidden = taken_out(text)
    assert [secret for secret in secrets if secret in hidden] == []
    assert "[redacted:" in hidden
    assert taken_out(hidden) == hidden


@pytest.mark.parametrize("name", SECRETS)
def test_a_prefix_of_a_launcher_changes_nothing(name: str) -> None:
    text, secrets = SECRETS[name]
    for label in ("[rank12]: ", "2026-01-01T03:00:00,123 gpu-17 INFO "):
        if name == "netrc, lines":  # its third line is told by standing alone
            continue
        hidden = by_line("\n".join(label + line for line in text.split("\n")))
        assert [secret for secret in secrets if secret in hidden] == []


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert redact(text) == text


def test_lines_between_those_of_a_key_stay() -> None:
    """Ranks write at the same time, and the end of a key may be missing."""
    lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        "Traceback (most recent call last):",
        "  File /usr/lib/python/site/packages/torch",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        "RuntimeError: CUDA error",
    ]
    shown = by_line("\n".join(lines)).split("\n")
    assert [at for at, line in enumerate(shown) if line != lines[at]] == [0, 1, 4]


def test_decisive_lines_of_real_logs_stay(shared: Path) -> None:
    changed = []
    looked_at = 0
    for case in sorted((shared / "logs").glob("*/case.yaml")):
        known = yaml.safe_load(case.read_text("utf-8"))
        for name, first, last in known["expect"].get("evidence") or ():
            named = [case.parent / name for name in ([name] if name else known["inputs"])]
            for path in [file for place in named for file in (place.rglob("*.*") if place.is_dir() else [place])]:
                lines = path.read_bytes().decode("utf-8", "replace").split("\n")[first - 1 : last]
                looked_at += len(lines)
                changed += [line for line in lines if redact(line) != line]
    assert looked_at > 100
    assert changed == []
