from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triage.redact import redact

HEX40 = "0123456789abcdef0123456789abcdef01234567"
SECRETS = {
    "OPENAI_API_KEY=sk-proj-abc123DEF456ghi789JKL012": "sk-proj",
    "key is sk-ant-api03-AbCdEf0123456789-xyz": "sk-ant",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 is not valid": "AbCdEf",
    "git clone https://ghp_0123456789abcdefABCDEF0123456789abcd@github.com/x/y": "ghp_",
    "remote: github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz": "11ABC",
    "glpat-xYz_0123456789abcdefg": "xYz",
    "xoxb-123456789012-abcdefGHIJ": "123456789012",
    "AKIAIOSFODNN7EXAMPLE": "IOSFODNN7",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "wJalr",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu": "SyA",
    "nvapi-abcdefghijklmnopqrstuvwx0123": "abcdefgh",
    f"wandb login {HEX40}": HEX40,
    f"+ export WANDB_API_KEY={HEX40}": HEX40,
    "Authorization: Bearer abcdef1234567890.xyz": "abcdef",
    '{"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}': "dXNlc",
    "curl -H 'Authorization: token 0123456789abcdef' https://x": "0123456789",
    "sent Bearer abcdefgh12345678": "abcdefgh",
    "postgresql://bob:hunter2@db.example.org:5432/runs": "hunter2",
    "redis://:s3cr3t@10.0.0.1:6379/0": "s3cr3t",
    "amqp://user:p@ss@host/vhost": "p@ss",
    "password=hunter2": "hunter2",
    "Password: hunter2": "hunter2",
    '"password": "hunter2 with a space"': "hunter2 with a space",
    "'db_password': 'x1y2'": "x1y2",
    "PGPASSWORD=abc123 psql": "abc123",
    "DB_PASS=hunter22": "hunter22",
    "MYSQL_PWD=hunter22 mysqldump": "hunter22",
    'export redis_pwd="a/b c"': "a/b c",
    "mysql --password hunter2 -h x": "hunter2",
    "--api-key=abcd1234efgh5678": "abcd1234",
    "train.py --hf-token abcd1234efgh5678 --lr 1": "abcd1234",
    'export SECRET_KEY="abc def"': "abc def",
    "client_secret: AbCd1234": "AbCd1234",
    '{"name": "HF_TOKEN", "value": "abc123"}': "abc123",
    r"\"api_key\": \"abcd1234\"": "abcd1234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0": "eyJ",
    "https://a.blob.core.windows.net/c/b?sv=2022&sig=AbC%2Fdef123%3D&se=2024": "AbC%2F",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential=ABCD1234%2F2024&X-Amz-Signature=0123abcd4567": "0123abcd4567",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abcd1234+/==;EndpointSuffix=core": "abcd1234",
    r"key: -----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY----- after": "MIIE",
    "Set-Cookie: session=abcdef123456; Path=/": "abcdef123456",
    "access_token: abc123def456ghi": "abc123",
    '"accessToken":"abc123def456ghi"': "abc123",
    "curl -s -u user:passw0rd https://x": "passw0rd",
    "sshpass -p hunter2 ssh x": "hunter2",
    "login with password: s3cretPW! now": "s3cretPW",
}
HARMLESS = [
    "tokens: 123",
    "max_tokens=2048",
    "tokenizer=meta-llama/Llama-2-7b",
    "num_tokens: 1234567",
    "num_query_token: 32",
    "time_per_token=0.123",
    "token ids: [1, 2, 3]",
    "eos_token='</s>', pad_token=[PAD], bos_token=<s>",
    "eos_token_id=2",
    "Replace eos token: <|eot_id|>",
    "hub_token=<HUB_TOKEN>,",
    "use_auth_token=False, push_to_hub_token=None",
    f"commit {HEX40}",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "KeyError: 'password'",
    "KeyError: 'api_key'",
    "Invalid password: authentication failed for user bob",
    "Unable to locate credentials: you can configure them",
    "argument --api-key: expected one argument",
    "OLDPWD=/home/u initial_pwd: /scratch/run",
    "forward_pass: 12.3ms backward_pass=completed",
    '"key": "init_start", "value": null',
    "Token: Token { kind: ContainerToken, service: 10.0.0.1:8041 }",
    "spark://CoarseGrainedScheduler@10.0.0.1:8000",
    "bob@example.org wrote from https://example.org/a@b",
    "http://10.0.0.1:8080/x",
    "systemd-ask-password-console.service sk-learn-contrib-imbalanced-learn",
    "hf_datasets_cache_directory_path",
    "risk-adjusted-1234567890abcdefghi",
    "--world_info=eyJtYXN0ZXIiOiBbMF19 --master_addr=10.0.0.1",
    "torch.distributed.elastic.multiprocessing.api: Sending process 123 closing signal SIGTERM",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS.items())
def test_a_secret_goes_and_its_surroundings_stay(text: str, secret: str) -> None:
    hidden = redact(text)
    assert secret not in hidden
    assert "[redacted:" in hidden
    assert redact(hidden) == hidden


def test_what_stands_around_a_secret_stays() -> None:
    assert redact("psql postgresql://bob:hunter2@db:5432/runs failed") == (
        "psql postgresql://bob:[redacted:password]@db:5432/runs failed"
    )
    assert redact('{"api_key": "abcd1234", "model": "m"}') == '{"api_key": "[redacted:secret]", "model": "m"}'
    assert redact("x?a=1&sig=abcdef99&b=2") == "x?a=1&sig=[redacted:signature]&b=2"
    assert redact("--hf-token abcd1234efgh --lr 1") == "--hf-token [redacted:secret] --lr 1"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert redact(text) == text


WORDS = st.sampled_from(
    [
        *SECRETS,
        *HARMLESS,
        "password",
        "=",
        ":",
        '"',
        "'",
        "\\",
        " ",
        "://",
        "@",
        "token",
        "-----BEGIN PRIVATE KEY",
        "sig=",
        "&",
    ]
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(WORDS | st.text(max_size=8), max_size=12).map("".join))
def test_idempotent(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "piece",
    [
        "password ",
        "token=",
        "sk-",
        "://a:",
        "bearer ",
        "-----BEGIN PRIVATE KEY-----",
        "curl -u ",
        " --a-b-c-token",
        "a_",
        "eyJ.",
    ],
)
def test_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            redact(text)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(64_000) < 8 * seconds(16_000) + 0.25  # a quadratic one takes many seconds


def test_what_stands_for_bytes_of_a_name_that_are_no_text_is_no_harm() -> None:
    assert redact("/data/caf\udce9.log: password=hunter22secret") == "/data/caf\udce9.log: password=[redacted:password]"


def test_a_line_of_a_private_key_goes_whatever_stands_before_it() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    for before in ("", "[rank0]: ", "0: ", "2024-05-01 03:00:00,123 INFO ", "+ ", '"'):
        assert redact(before + line) == before + "[redacted:private-key]"
    for harmless in ("a" * 64, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "= " * 40):
        assert redact(harmless) == harmless
