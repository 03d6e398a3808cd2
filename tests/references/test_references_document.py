"""Files of references: what is taken, and that everything else is said with file and entry."""

from __future__ import annotations

import random

import pytest

from seatrial.errors import ParseError, UsageError
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.history import Qualifier
from seatrial.references import all_references, reference_named
from seatrial.references.loader import checked, read, read_file, shipped_references

HEAD = 'study = "site"\nsource = "Acceptance, 2025"\nyear = 2025\n[configuration]\nmachine = "node"\n'
ENTRY = '[[reference]]\nid = "triad"\nbenchmark = "memory.stream"\nfigure = "triad"\nvalue = "651GB/s"\n'


def file_of(*lines: str, head: str = HEAD) -> bytes:
    return (head + ENTRY + "\n".join(lines)).encode()


def test_an_entry_with_everything():
    (found,) = read(
        file_of(
            'better = "lower"',
            'qualifier = "about"',
            "parameters = { threads = 64, nontemporal = true, node = 'auto', share = 0.5 }",
            'configuration = { bios = "NPS1" }',
            'remark = "the median of 312 nodes"',
            "year = 2024",
        ),
        "f.toml",
    )
    assert (found.id, found.value, found.unit, found.better) == ("site.triad", 651e9, "B/s", Better.LOWER)
    assert found.parameters == {"threads": 64, "nontemporal": True, "node": "auto", "share": 0.5}
    assert found.configuration == {"machine": "node", "bios": "NPS1"}
    assert (found.source, found.year, found.qualifier) == ("Acceptance, 2025", 2024, Qualifier.ABOUT)


def test_a_range_becomes_two_and_contradictions_reach_both():
    text = HEAD + ENTRY.replace('value = "651GB/s"', 'range = ["1GB/s", "2GB/s"]\ncontradicts = ["other"]')
    text += ENTRY.replace('"triad"\nbench', '"other"\nbench') + 'contradicts = ["triad"]\n'
    low, high, other = checked(read(text.encode(), "f.toml"))
    assert (low.id, low.value, low.qualifier) == ("site.triad-low", 1e9, Qualifier.LOWEST)
    assert (high.id, high.value, high.qualifier) == ("site.triad-high", 2e9, Qualifier.HIGHEST)
    assert other.contradicts == ("site.triad-low", "site.triad-high")
    assert low.contradicts == high.contradicts == ("site.other",)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["valeu = 1"], "did you mean value"),
        (['range = ["1GB/s", "2GB/s"]'], "either a `value` or a `range`"),
        (['qualifier = "aboot"'], "did you mean about"),
        (['better = "faster"'], "better"),
        (["parameters = 3"], "`parameters` is not a table"),
        (["parameters = { threads = [1] }"], "'threads'"),
        (["parameters = { threads = nan }"], "'threads'"),
        (["parameters = { threads = 2026-01-01 }"], "'threads'"),
        (["configuration = { cores = 2 }"], "table of texts"),
        (['contradicts = "other"'], "list of ids"),
        (['contradicts = ["a b"]'], "list of ids"),
        (["year = true"], "not a year"),
        (["remark = 4"], "not a text"),
        (['remark = "\\u001b[31m"'], "unprintable"),
        ([f'remark = "{"x" * 501}"'], "longer than 500"),
    ],
)
def test_a_wrong_key_is_named_with_file_and_entry(lines, said):
    with pytest.raises(UsageError, match=r"^f\.toml: reference 'triad'") as caught:
        read(file_of(*lines), "f.toml")
    assert said in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.parametrize(
    "written",
    ['"651"x', '"-1GB/s"', '"0GB/s"', "0", "inf", "nan", "true", '"651furlong"', "[]", '"1e999GB/s"', "10e400"],
)
def test_what_is_no_value_is_refused(written):
    with pytest.raises(UsageError, match=r"f\.toml"):
        read(file_of().replace(b'"651GB/s"', written.encode()), "f.toml")


@pytest.mark.parametrize("ends", ['["2GB/s", "1GB/s"]', '["1GB/s", "2s"]', '["1GB/s"]', "3", '["1GB/s", "1GB/s"]'])
def test_a_range_goes_from_low_to_high(ends):
    with pytest.raises(UsageError, match="range"):
        read(file_of().replace(b'value = "651GB/s"', f"range = {ends}".encode()), "f.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"study = \n", "line 1"),
        (b'study = "x"\na = "\xff"\n', "UTF-8"),
        (b"a = " + b"[" * 100_000, "nested|TOML"),
        (b"a = " + b"9" * 10_000, "TOML"),
        (b'study = "a b"\n', "study"),
        (b"", "study"),
        (b'study = "x"\nreference = 3\n', "list of tables"),
        (b'study = "x"\nreference = [3]\n', "not a table"),
        (b'study = "x"\nunknown = 3\n', "unknown"),
    ],
)
def test_damaged_files(content, said):
    with pytest.raises(UsageError, match=said):
        read(content, "f.toml")


def test_random_damage_never_ends_in_a_traceback():
    chance = random.Random(7)
    whole = file_of("parameters = { threads = 64 }", 'contradicts = ["x"]', 'qualifier = "up to"')
    for _ in range(600):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(damaged))
            if chance.random() < 0.5:
                damaged[place] = chance.choice(b'"[]{}=\n.,0x\xff')
            else:
                del damaged[place : place + chance.randint(1, 12)]
        try:
            read(bytes(damaged), "f.toml")
        except UsageError as error:
            assert "f.toml" in str(error)


def test_a_file_that_is_none_or_too_large(tmp_path):
    with pytest.raises(UsageError, match="is not a file"):
        read_file(tmp_path)
    (tmp_path / "large.toml").write_bytes(b"#" * ((4 << 20) + 1))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        read_file(tmp_path / "large.toml")


def test_two_of_one_id_and_one_sided_contradictions_are_refused():
    first, *_ = shipped_references()
    with pytest.raises(UsageError, match="two references have the id"):
        checked([first, first])
    one = read(file_of('contradicts = ["other"]'), "f.toml")
    with pytest.raises(UsageError, match=r"site\.other"):
        checked(one)
    other = read((HEAD + ENTRY.replace('"triad"\nbench', '"other"\nbench')).encode(), "f.toml")
    with pytest.raises(UsageError, match="does not contradict it"):
        checked([*one, *other])
    with pytest.raises(UsageError, match="does not contradict it"):
        checked(read(file_of('contradicts = ["triad"]'), "f.toml"))


def test_the_own_file_takes_part_and_is_read_again_when_it_changes(monkeypatch, tmp_path):
    monkeypatch.delenv("SEATRIAL_REFERENCES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert all_references() == shipped_references()
    folder = tmp_path / "seatrial"
    folder.mkdir()
    (folder / "references.toml").write_bytes(file_of())
    assert all_references()[-1] == reference_named("site.triad")
    (folder / "references.toml").write_bytes(file_of().replace(b"651GB/s", b"1651GB/s"))
    assert reference_named("site.triad").value == 1651e9


def test_the_variable_names_another_file_which_must_be_there(monkeypatch, tmp_path):
    monkeypatch.setenv("SEATRIAL_REFERENCES", str(tmp_path / "ours.toml"))
    with pytest.raises(UsageError, match="SEATRIAL_REFERENCES"):
        all_references()
    (tmp_path / "ours.toml").write_bytes(file_of())
    assert reference_named("site.triad").value == 651e9
    (tmp_path / "ours.toml").write_bytes(b"study =\n")
    with pytest.raises(ParseError, match=r"ours\.toml: line 1"):
        all_references()
    (tmp_path / "ours.toml").write_bytes(
        file_of(head=HEAD.replace("site", "s2")).replace(b'"triad"\nb', b'"p2p-v100"\nb')
    )
    with pytest.raises(UsageError, match=r"two references have the id 's2\.p2p-v100'"):
        all_references()


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400, "nan", "inf", "1e308"])
def test_a_parameter_that_no_float_can_hold_is_refused(number):
    text = file_of("parameters = { threads = 2 }").replace(b"threads = 2", f"threads = {number}".encode())
    with pytest.raises(UsageError, match="up to 2\\^53"):
        read(text, "f.toml")
