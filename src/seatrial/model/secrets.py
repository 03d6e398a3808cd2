"""Secrets: values that must not enter records, pages, logs or identities, judged by the names beside them.

Arguments are masked where a name or a form shows a secret: `--password=X`, `--token X`, `API_KEY=X`, `-p X`,
`Authorization: X`, `-u user:X`, `mysql -pX`, user data and parameters of URLs, parts of connection strings
(`Server=h;Password=X`), and tokens that are known by their form. A word with blanks is masked as the command or text
that it is. Numbers and paths stay, since most are settings
(`-p 4`, `--max-tokens 128`, `--key-file id.pem`), except after names that only passwords and the like have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from seatrial.model.benchmark.parameter import Params, Value

_Given = TypeVar("_Given", Value, Value | None)

MASK = "***"
"""What stands for a secret."""

_PARTS = ("TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "JWT", "AUTH")
_ONLY_SECRETS = ("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIAL", "JWT")
"""Parts of names whose values are never numbers that matter to a measurement."""
_SHORT = frozenset({"PW", "PWD", "PSWD", "CREDS"})
"""Parts of names that are too short to be found in the middle of one."""
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})
_LEAST_REPLACED = 4
_NAMES_OF_FILES = ("FILE", "PATH", "DIR")

_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNED = re.compile(r"((?:-{1,2}|-D)?([A-Za-z_][\w.-]*)=)(.+)", re.DOTALL)
_HEADER = re.compile(r"(([A-Za-z][\w-]*):[ \t]+)(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:x]*(?:[eE][+-]?[0-9]+)?[A-Za-z%]{0,3}")
_PATH = re.compile(r"[.~]{0,2}/.*|[\w.+-]*[\w+-]/[\w./+-]*|[\w+-]+\.[A-Za-z][A-Za-z0-9]{0,5}", re.DOTALL)
_URL = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)(?:([^\s/@:?#]*)(:[^\s/@?#]*)?@)?([^\s]*)")
_QUERY = re.compile(r"([?&;#]([^\s=&;#?]+)=)([^\s&;#]+)")
_INNER = re.compile(r"""(([A-Za-z_][\w.-]*)["']?\s*[=:]\s*["']?(?:(?:Bearer|Basic|Token)\s+)?)([^\s;,&"'{}]+)""")
"""A name with its value within a word: `Server=h;Password=X`, `{"token": "X"}`, `Authorization: Bearer X`."""
_TOKEN = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
"""Of GitHub, GitLab, Hugging Face, Slack and AWS, and JSON Web Tokens (RFC 7519)."""
_USER_ASSIGNED = re.compile(r"(--?(?:proxy-)?user=[^:/]+:)(?!//)(.+)")
_BLANKS = re.compile(r"(\s+)")
_USERS = ("-u", "--user", "--proxy-user", "-U")
_OPTIONS_OF = {
    "p": "mysql mysqldump mysqladmin mysqlimport mysqlshow mariadb mariadb-dump mariadb-admin sshpass mongo mongosh 7z",
    "P": "ipmitool ipmi-sensors ipmi-oem ipmipower sqlcmd bcp zip unzip",
    "w": "ldapsearch ldapadd ldapmodify ldapwhoami",
    "a": "redis-cli",
}
_OF_PROGRAMS = {program: option for option, programs in _OPTIONS_OF.items() for program in programs.split()}
"""Program -> the letter whose value, in the same word or the next one, is a password."""
_LAUNCHERS = re.compile(
    r"(?:mpirun|mpiexec|orterun|prun|srun|salloc|sbatch|aprun|jsrun|flux|ssh|scp|numactl|taskset)(?:[.-][\w.-]+)?"
)


def sounds_like_a_secret(name: str) -> bool:
    """Whether the value of a variable or option of this name must be kept private."""
    plain = _plain(name)
    if plain in _NO_SECRETS:
        return False
    return any(part in plain for part in _PARTS) or not _SHORT.isdisjoint(plain.replace(".", "_").split("_"))


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """An argument list with its secrets masked; the same words where there are none."""
    masked: list[str] = []
    is_secret = False  # the option before this word takes a secret
    takes_user = of_launcher = False
    option = letter = ""
    for word in words:
        is_attached = bool(letter) and word.startswith(f"-{letter}") and len(word) > 2
        if is_attached:
            masked.append(word[:2] + MASK)
        elif is_secret and not word.startswith("-") and _may_be_secret(option, word):
            masked.append(MASK)
        elif takes_user and ":" in word and "://" not in word and not word[0].isdigit():
            masked.append(f"{word.partition(':')[0]}:{MASK}")
        else:
            masked.append(_masked_word(word))
        if not word.startswith("-"):
            name = word.rpartition("/")[2]
            of_launcher = _LAUNCHERS.fullmatch(name) is not None or (of_launcher and "/" not in word)
            letter = _OF_PROGRAMS.get(name, letter)
        option = found[1] if (found := _OPTION.fullmatch(word)) and not is_attached else ""
        is_secret = bool(option) and (
            sounds_like_a_secret(option) or (option == "p" and not of_launcher) or option == letter
        )
        takes_user = word in _USERS
    return tuple(masked)


def masked_value(value: _Given) -> _Given:
    """The value of a parameter with its secrets masked: of an argument list, or of a URL in text."""
    if isinstance(value, tuple):
        return masked_words(value)
    return _TOKEN.sub(MASK, _masked_url(value)) if isinstance(value, str) else value


def masked_parameters(parameters: Mapping[str, _Given]) -> dict[str, _Given]:
    """Parameters as they may be shown, stored and hashed."""
    return {name: masked_value(value) for name, value in parameters.items()}


def is_masked(parameters: Params) -> bool:
    """Whether a secret among these parameters was masked."""
    words = (word for value in parameters.values() for word in (value if isinstance(value, tuple) else (value,)))
    return any(isinstance(word, str) and MASK in word for word in words)


def masked_document(document: Any) -> Any:
    """JSON in which every list of words, such as an argument list, and every URL is masked."""
    if isinstance(document, Mapping):
        return {key: masked_document(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        if document and all(isinstance(item, str) for item in document):
            return list(masked_words(document))
        return [masked_document(item) for item in document]
    return _masked_url(document) if isinstance(document, str) else document


def secrets_in(parameters: Params) -> tuple[str, ...]:
    """The secrets themselves in the argument lists among parameters, longest first."""
    found: set[str] = set()
    for value in parameters.values():
        words = value if isinstance(value, tuple) else ()
        for word, shown in zip(words, masked_words(words), strict=True):
            if shown != word:
                hidden = re.fullmatch("(.+?)".join(map(re.escape, shown.split(MASK))), word, re.DOTALL)
                found.update(hidden.groups() if hidden else (word,))
    return tuple(sorted(found, key=len, reverse=True))


def without_secrets(document: Any, secrets: Sequence[str]) -> Any:
    """JSON or text in which these secrets are masked wherever they occur. Secrets of fewer than four characters are
    masked only as whole texts: they are part of too many words."""
    if isinstance(document, Mapping):
        return {key: without_secrets(value, secrets) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [without_secrets(item, secrets) for item in document]
    if isinstance(document, str):
        for secret in secrets:
            document = MASK if document == secret else document
            document = document.replace(secret, MASK) if len(secret) >= _LEAST_REPLACED else document
    return document


def _plain(name: str) -> str:
    return name.upper().replace("-", "_")


def _may_be_secret(name: str, value: str) -> bool:
    """Whether a value after a name that suggests a secret is one; `-p` has no name that says more."""
    plain = _plain(name)
    if plain.endswith(_NAMES_OF_FILES):
        return False
    if any(part in plain for part in _ONLY_SECRETS):
        return True
    return _NUMBER.fullmatch(value) is None and _PATH.fullmatch(value) is None


def _masked_word(word: str) -> str:
    for form in (_ASSIGNED, _HEADER):
        found = form.fullmatch(word)
        if found and sounds_like_a_secret(found[2]) and _may_be_secret(found[2], found[3]):
            return f"{found[1]}{MASK}"
    if (user := _USER_ASSIGNED.fullmatch(word)) is not None:
        return f"{user[1]}{MASK}"
    pieces = _BLANKS.split(word)
    if len(pieces) > 1:  # a command in quotes, such as that of `sh -c`
        pieces[::2] = masked_words(pieces[::2])
        word = "".join(pieces)
    return _TOKEN.sub(MASK, _masked_url(_INNER.sub(_masked_inner, word)))


def _masked_inner(found: re.Match[str]) -> str:
    is_secret = sounds_like_a_secret(found[2]) and _may_be_secret(found[2], found[3])
    return f"{found[1]}{MASK}" if is_secret else found[0]


def _masked_url(text: str) -> str:
    return _URL.sub(_masked_match, text) if "://" in text else text


def _masked_match(found: re.Match[str]) -> str:
    """A URL without its password, a lone user name of HTTP (which is a token), and secret parameters."""
    scheme, user, password, rest = found[1], found[2], found[3], found[4]
    named = ""
    if user is not None:
        is_token = password is None and scheme.lower() in ("http://", "https://")
        named = f"{MASK}@" if is_token else f"{user}{'' if password is None else f':{MASK}'}@"
    return scheme + named + _QUERY.sub(lambda q: q[1] + MASK if sounds_like_a_secret(q[2]) else q[0], rest)
