from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triage.redact.pseudonyms import Pseudonyms

HIDDEN = [
    ("mail bob.smith@uni.example.org now", "mail <email-1> now"),
    ("File /home/alice/run/train.py", "File /home/<user-1>/run/train.py"),
    ("/gpfs/fs1/users/alice/ckpt /alice/x alice@gpu-17", "/gpfs/fs1/users/<user-1>/ckpt /<user-1>/x <user-1>@gpu-17"),
    ("/Users/alice /nfs/home2/bob", "/Users/<user-1> /nfs/home2/<user-2>"),
    (r"C:\Users\alice\x", r"C:\Users\<user-1>\x"),
    ("UserId=alice(1001) GroupId=ml", "UserId=<user-1>(1001) GroupId=ml"),
    ("uid=1001(alice) gid=1001(alice)", "uid=1001(<user-1>) gid=1001(<user-1>)"),
    ("USER=alice PWD=/scratch/alice/x", "USER=<user-1> PWD=/scratch/<user-1>/x"),
    ("wandb: Currently logged in as: alice.", "wandb: Currently logged in as: <user-1>."),
    ("cd ~alice/run", "cd ~<user-1>/run"),
    ('{"user": "alice", "n": 1}', '{"user": "<user-1>", "n": 1}'),
    ("connect to 10.1.2.3:29500 and 192.168.0.7<45678>", "connect to <ip-1>:29500 and <ip-2><45678>"),
    ("MASTER_ADDR=172.16.0.4 fe80::1ff:fe23:4567:890a%ib0", "MASTER_ADDR=<ip-1> <ip-2>%ib0"),
    ("GET https://git.corp.example/team/secret.git?x=1 403", "GET https://<host-1>/<path-1> 403"),
    ("http://store.internal:9000/b http://store.internal:9000/", "http://<host-1>:9000/<path-1> http://<host-1>:9000/"),
    ("http://10.0.0.5:8080/x", "http://<ip-1>:8080/x"),
]  # fmt: skip
SHOWN = [
    "gpu-17: task 3: Exited with exit code 1",
    "ip-10-0-0-5: rank 3 lost",
    "tcp://gpu-17:29500 http://gpu-17:8265/api",
    "https://huggingface.co/meta-llama/Llama-2-7b-hf/resolve/main/config.json",
    "File /home/ubuntu/train.py, /home/shared/x, /root/.cache",
    "nvidia-curand-cu12==10.3.5.147 libcurand.so.10.3.5.147 v10.1.2.3",
    "driver 535.104.05, 8.8.8.8 answers",
    "git@github.com:a/b.git root@gpu-01.example.org",
    "user: root, login: admin",
    "KeyError: 'user'",
    "@torch.no_grad() a@b",
    "rank 10 of 192, step 10.0.5",
    "<log> <user> <unk> <pad-1>",
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN)
def test_personal_data_has_a_stand_in_and_comes_back(text: str, shown: str) -> None:
    names = Pseudonyms()
    assert names.hide(text) == shown
    assert names.restore(shown) == text


@pytest.mark.parametrize("text", SHOWN)
def test_evidence_and_public_things_stay(text: str) -> None:
    assert Pseudonyms().hide(text) == text


def test_the_same_thing_has_the_same_stand_in_in_every_text() -> None:
    names = Pseudonyms()
    assert names.hide("/home/alice/a 10.0.0.1") == "/home/<user-1>/a <ip-1>"
    assert names.hide("10.0.0.2 10.0.0.1 /home/bob") == "<ip-2> <ip-1> /home/<user-2>"
    assert names.hide("by alice@login1") == "by <user-1>@login1"


def test_names_of_nodes_stay_whatever_they_look_like() -> None:
    names = Pseudonyms(["10.0.0.7", "gpu-17", "n1.hpc.example.org"])
    text = "10.0.0.7: http://gpu-17.hpc.example.org:8265/x http://n1.hpc.example.org/y /home/gpu-17/x"
    assert names.hide(text) == text


def test_a_model_may_spell_a_stand_in_in_its_way() -> None:
    names = Pseudonyms()
    names.hide("/home/alice/x")
    for said in ("<user-1>", "<USER-1>", "<user-01>"):
        assert names.restore(said) == "alice"
    assert names.restore("<user-2> <email-1>") == "<user-2> <email-1>"


def test_a_stand_in_that_stands_in_the_log_is_not_taken_for_one_of_ours() -> None:
    names = Pseudonyms()
    text = "/home/alice says <user-1> and <USER-1>"
    hidden = names.hide(text)
    assert "alice" not in hidden
    assert names.restore(hidden) == text
    assert names.restore(hidden.split(" says ")[1]) == "<user-1> and <USER-1>"


PIECES = st.sampled_from(
    [text for text, _ in HIDDEN]
    + SHOWN
    + ["<", ">", "user", "-1", "<user-1>", r"<ip\-2>", "@", "/home/", "alice", "://", "10.0.0.1", " ", "=", "\\", '"']
)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.lists(PIECES | st.text(max_size=6), max_size=8).map("".join), max_size=4))
def test_what_was_hidden_comes_back_as_it_was(texts: list[str]) -> None:
    names = Pseudonyms()
    hidden = [names.hide(text) for text in texts]
    assert [names.restore(text) for text in hidden] == texts


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_json_stays_json(text: str) -> None:
    """A model answers in JSON and quotes stand-ins in it."""
    names = Pseudonyms()
    said = json.dumps({"quote": names.hide(text)})
    assert isinstance(json.loads(names.restore(said))["quote"], str)
