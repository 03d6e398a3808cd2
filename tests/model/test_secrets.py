"""Secrets in arguments: what is masked, and what stays."""

from __future__ import annotations

import pytest

from seatrial.model.secrets import (
    MASK,
    is_masked,
    masked_document,
    masked_parameters,
    masked_words,
    secrets_in,
    without_secrets,
)

MASKED = {
    "./app --password=hunter2 in.txt": f"./app --password={MASK} in.txt",
    "./app --password hunter2 in.txt": f"./app --password {MASK} in.txt",
    "./app --password=1234": f"./app --password={MASK}",
    "./app --password /path/like": f"./app --password {MASK}",
    "./app -p hunter2": f"./app -p {MASK}",
    "./app --api-key=abc --auth-token abc": f"./app --api-key={MASK} --auth-token {MASK}",
    "env DB_PASSWORD=abc API_KEY=abc ./app": f"env DB_PASSWORD={MASK} API_KEY={MASK} ./app",
    "curl -u me:abc https://host/": f"curl -u me:{MASK} https://host/",
    "get https://me:abc@host:80/x?q=1&token=abc&n=2#f": f"get https://me:{MASK}@host:80/x?q=1&token={MASK}&n=2#f",
    "git clone https://ghp_abc@host/x.git": f"git clone https://{MASK}@host/x.git",
    "./app --url=s3://me:abc@host/b": f"./app --url=s3://me:{MASK}@host/b",
    "mpirun -np 4 -p 4 ./app -p hunter2": f"mpirun -np 4 -p 4 ./app -p {MASK}",
    "srun -p debug ./app -p hunter2": f"srun -p debug ./app -p {MASK}",
    "./app -DTOKEN=abc": f"./app -DTOKEN={MASK}",
}
STAY = (
    "srun -p gpu -n 4 ./app",
    "ssh -p 22 host",
    "./app -p 4 -p 0.5 -p 1e6",
    "gmx grompp -p topol.top",
    "mkdir -p /tmp/x",
    "./app --max-tokens 128 --passes=5 --key=7",
    "./app --key-file id.pem --password-file=/run/x",
    "./app --verbose -v --token",
    "git clone ssh://git@host/x.git",
    "http://host:80/x?size=3",
    "./app -p --next",
    "",
)


@pytest.mark.parametrize("words", MASKED)
def test_a_secret_is_masked(words: str) -> None:
    assert " ".join(masked_words(words.split(" "))) == MASKED[words]


@pytest.mark.parametrize("words", STAY)
def test_a_setting_stays(words: str) -> None:
    assert masked_words(tuple(words.split(" "))) == tuple(words.split(" "))


def test_a_header_is_one_word() -> None:
    assert masked_words(["curl", "-H", "Authorization: Bearer abc"]) == ("curl", "-H", f"Authorization: {MASK}")


def test_masking_twice_changes_nothing() -> None:
    for words in (*MASKED, *STAY):
        once = masked_words(words.split(" "))
        assert masked_words(once) == once


def test_parameters_documents_and_what_a_program_prints() -> None:
    parameters = {"argv": ("./app", "--password=hunter2", "-p", "abc"), "cpus": 2, "label": "x"}
    shown = masked_parameters(parameters)
    assert shown == {"argv": ("./app", f"--password={MASK}", "-p", MASK), "cpus": 2, "label": "x"}
    assert is_masked(shown) and not is_masked(parameters)
    assert secrets_in(parameters) == ("hunter2", "abc")
    printed = {"arguments": ["--word-1", "--password=hunter2", "--word-3", "abc"], "n": 3, "text": "abcdef hunter2"}
    assert without_secrets(printed, secrets_in(parameters)) == {
        "arguments": ["--word-1", f"--password={MASK}", "--word-3", MASK],
        "n": 3,
        "text": f"abcdef {MASK}",
    }
    assert masked_document({"axes": [{"values": [["./a", "-p", "abc"], 3, None]}]}) == {
        "axes": [{"values": [["./a", "-p", MASK], 3, None]}]
    }
