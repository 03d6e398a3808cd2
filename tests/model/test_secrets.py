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
    "mysql -phunter2 db": f"mysql -p{MASK} db",
    "/usr/bin/mysqldump -psecret db": f"/usr/bin/mysqldump -p{MASK} db",
    "sshpass -phunter2 ssh -p 22 host": f"sshpass -p{MASK} ssh -p 22 host",
    "ipmitool -H host -U me -P abc": f"ipmitool -H host -U me -P {MASK}",
    "redis-cli -a abc": f"redis-cli -a {MASK}",
    "./app --pw abc --pwd abc": f"./app --pw {MASK} --pwd abc",
    "docker run -e PASSWORD=abc -e MYSQL_PWD=abc": f"docker run -e PASSWORD={MASK} -e MYSQL_PWD={MASK}",
    "./app Server=x;User=u;Password=abc": f"./app Server=x;User=u;Password={MASK}",
    "AWS_SECRET_ACCESS_KEY=abc ./app": f"AWS_SECRET_ACCESS_KEY={MASK} ./app",
    "curl --user=me:abc https://host/": f"curl --user=me:{MASK} https://host/",
    "./app ghp_0123456789abcdefghijklm": f"./app {MASK}",
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
    "gcc -pthread -pg -p",
    "env PWD=/x OLDPWD=/y ./app",
    "pw.x -in a.in",
    "./app note:4 key:7",
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


def test_a_command_in_one_word_is_masked_as_a_command() -> None:
    line = "mysql -phunter2 db; TOKEN=abc ./x --password abc | curl -H 'Authorization: Bearer abc' host"
    shown = "mysql -p*** db; TOKEN=*** ./x --password *** | curl -H 'Authorization: Bearer ***' host"
    assert masked_words(["sh", "-c", line]) == ("sh", "-c", shown)
    assert masked_words(['{"user": "me", "password": "abc", "n": 2}']) == ('{"user": "me", "password": "***", "n": 2}',)
    assert masked_words(["host=h password=abc dbname=d"]) == ("host=h password=*** dbname=d",)


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
