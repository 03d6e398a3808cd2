"""Site files: their contents, and error messages with file, line and accepted values."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from seatrial.errors import UsageError
from seatrial.model.environment.container import ContainerDevice, ContainerMount
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.environment.site import (
    ALL_MEMORY,
    JobOptions,
    Partition,
    Site,
    SiteContainer,
    SiteEnvironment,
    System,
)
from seatrial.plan.files import read_yaml
from seatrial.plan.schemas import SCHEMAS
from seatrial.plan.site_file import read_site, site_of

WHOLE = """
environments:
  production:
    mpi: /opt/openmpi/4.1.6
    launcher: srun
    compiler: g++-12
    flags: -O2  -mavx2
    variables: {UCX_TLS: "rc,sm,self", FI_RETRIES: 3, UCX_X: true}
  vendor: {mpi: /opt/vendor/bin/mpicc, family: mpich, launcher: /opt/vendor/bin/start}
  plain:
systems:
  tera:
    partitions:
      compute: {environments: [vendor, production], launcher: srun, nodes: 64}
      fat: {hosts: [fat1, fat2.example.org]}
      login:
"""


def test_a_whole_file() -> None:
    site = read_site(WHOLE.encode(), "site.yaml")
    production, vendor, plain = site.environments
    assert production == SiteEnvironment(
        "production",
        Path("/opt/openmpi/4.1.6"),
        launcher="srun",
        compiler="g++-12",
        flags=("-O2", "-mavx2"),
        variables=(("UCX_TLS", "rc,sm,self"), ("FI_RETRIES", "3"), ("UCX_X", "true")),
    )
    assert (vendor.family, vendor.launcher) == (MpiFamily.MPICH, "/opt/vendor/bin/start")
    assert plain == SiteEnvironment("plain")
    assert site.systems == (
        System(
            "tera",
            (
                Partition("compute", ("vendor", "production"), "srun", nodes=64),
                Partition("fat", hosts=("fat1", "fat2.example.org"), nodes=2),
                Partition("login"),
            ),
        ),
    )
    assert [e.name for e in site.environments_at(site.place("tera"))] == ["vendor", "production"]
    assert [e.name for e in site.environments_at(site.place("tera:login"))] == ["production", "vendor", "plain"]


JOBS = """\
systems:
  tera:
    batch: slurm
    poll: 2min
    partitions:
      gpu: {queue: gpus, account: proj1, qos: high, constraint: a100&nvlink, reservation: r1, gpus_per_node: 4,
            cpus_per_node: 64, exclusive: false, modules: [openmpi/5.0], extra: ["#SBATCH --mail-type=NONE"],
            time_limit: 90min, python: /shared/bin/python, memory: 180GiB, gres: ["nvme:1", "shard:a100:2"]}
      cpu:
"""


def test_programs_by_their_commands() -> None:
    site = read_site(b"programs: {namd3: /opt/namd/namd3, xhpl: ~/bin/xhpl}\n", "site.yaml")
    assert site.programs == {"namd3": Path("/opt/namd/namd3"), "xhpl": Path("~/bin/xhpl").expanduser()}
    for wrong in ("{namd3: namd3}", "{-x: /a}", "{a: [b]}", "{a/b: /c}"):
        with pytest.raises(UsageError):
            read_site(f"programs: {wrong}\n".encode(), "site.yaml")


def test_what_jobs_need() -> None:
    (tera,) = read_site(JOBS.encode(), "site.yaml").systems
    gpu, cpu = tera.partitions
    assert (tera.batch, tera.poll_s) == ("slurm", 120.0)
    assert gpu.job == JobOptions(
        *("gpus", "proj1", "high", "a100&nvlink", "r1", 4, False, ("openmpi/5.0",), ("#SBATCH --mail-type=NONE",)),
        memory=180 << 30,
        gres=("nvme:1", "shard:a100:2"),
    )
    assert (gpu.longest_s, gpu.python, gpu.cpus_per_node) == (5400.0, Path("/shared/bin/python"), 64)
    assert (cpu.job, cpu.longest_s, cpu.python) == (JobOptions(), None, None)
    for wrong in ("memory: 1kB", "memory: much", "gres: [nvme:0]", "gres: ['nvme 1']", "gres: nvme"):
        with pytest.raises(UsageError):
            read_site(JOBS.replace("exclusive: false", wrong).encode(), "site.yaml")
    everything = read_site(JOBS.replace("180GiB", "all").encode(), "site.yaml").systems[0].partitions[0]
    assert everything.job.memory == ALL_MEMORY


CONTAINERS = """\
containers:
  app:
    image: ~/app.sqfs
    runtime: charliecloud
    mpi: joined
    mounts: [/data, "/opt/site:/opt/x:ro"]
    devices: [nvidia, nvidia.com/gpu=0]
    variables: {OMP_PROC_BIND: true}
  stored: {image: "site/app:1"}
"""


def test_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    site = read_site(CONTAINERS.encode(), "site.yaml")
    assert site.container("app") == SiteContainer(
        *("app", "/home/me/app.sqfs", "charliecloud", "joined"),
        (ContainerMount("/data", "/data"), ContainerMount("/opt/site", "/opt/x", is_read_only=True)),
        (ContainerDevice("nvidia", is_cdi=False), ContainerDevice("nvidia.com/gpu=0", is_cdi=True)),
        (("OMP_PROC_BIND", "true"),),
    )
    assert site.container("stored") == SiteContainer("stored", "site/app:1") and site.container("none") is None
    jsonschema.validate(yaml_of(CONTAINERS), SCHEMAS["site"]())


def yaml_of(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


def test_a_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (environment,) = read_site(b"environments: {a: {mpi: ~/mpi, launcher: ~/bin/srun}}", "f").environments
    assert (environment.mpi, environment.launcher) == (Path("/home/me/mpi"), "/home/me/bin/srun")


@pytest.mark.parametrize("text", ["", "\n", "# only\n  # comments\n", "\ufeff# bom"])
def test_an_empty_file_is_an_empty_site(text: str) -> None:
    assert read_site(text.encode(), "f") == Site(file="f")


@pytest.mark.parametrize(
    ("text", "line", "seen", "todo"),
    [
        ("enviroments: {}", 1, "enviroments: unknown key", "did you mean environments?"),
        ("environments:\n  a: {mpj: /x}", 2, "environments.a.mpj: unknown key", "did you mean mpi?"),
        ("environments:\n  a:\n    qqq: 1", 3, "unknown key", "keys: mpi, family, launcher"),
        ("systems: {a: {partitions: {b: {hots: [x]}}}}", 1, "unknown key", "did you mean hosts?"),
        ("environments: [a]", 1, "it cannot be ['a']", "a mapping of names to environments"),
        ("environments: {a: 3}", 1, "environments.a: it cannot be 3", "a mapping with any of mpi"),
        ("environments: {a: {mpi: opt/x}}", 1, "it cannot be 'opt/x'", "begins with /"),
        ("environments: {a: {mpi: 3}}", 1, "it cannot be 3", "prefix"),
        ("environments: {a: {mpi: ''}}", 1, "it is empty", "prefix"),
        ("environments: {a: {family: lam}}", 1, "it cannot be 'lam'", "openmpi, mpich, intel, mvapich or cray"),
        ("environments: {a: {launcher: bin/srun}}", 1, "it cannot be 'bin/srun'", "command on PATH"),
        ("environments: {a: {launcher: 'srun; rm'}}", 1, "it cannot be", "command on PATH"),
        ("environments: {a: {compiler: '-x'}}", 1, "is not a command", "g++"),
        ("environments: {a: {flags: -fplugin=x.so}}", 1, "'-fplugin=x.so' is not accepted", "flags"),
        ("environments: {a: {variables: {ucx: 1}}}", 1, "'ucx' is not a valid variable name", "upper case"),
        ("environments: {a: {variables: {\n MY_TOKEN: x}}}", 2, "suggests a secret", "outside"),
        ("environments: {a: {variables: {A: [1]}}}", 1, "it cannot be [1]", "text"),
        ("environments: {a: {variables: {A: null}}}", 1, "environments.a.variables.A: ", "text"),
        ("environments: {a b: {}}", 1, "'a b' is not a valid name", "letters"),
        ("environments: {../a: {}}", 1, "is not a valid name", "letters"),
        ("containers: {a: {}}", 1, "the key image is missing", "image takes"),
        ("containers: {a: {image: -v}}", 1, "'-v' is not an image", "it takes none, the name"),
        ("containers: {a: {image: none}}", 1, "it cannot be 'none'", "the path of a folder"),
        ("containers: {none: {image: /a}}", 1, "a container cannot be called 'none'", "rename it"),
        ("containers: {a: {image: /a, runtime: dockre}}", 1, "'dockre' is not accepted", "docker"),
        ("containers: {a: {image: /a, mpi: here}}", 1, "'here' is not accepted", "outside"),
        ("containers: {a: {image: /a, mounts: /data}}", 1, "it cannot be '/data'", "a list of mounts"),
        (
            "containers: {a: {image: /a, mounts: [/x,\n '/d:/d:rw']}}",
            2,
            "mounts: '/d:/d:rw' is not a mount",
            "it takes SOURCE",
        ),
        ("containers: {a: {image: /a, mounts: [/x, '/y:/x']}}", 1, "inside the other", "elsewhere"),
        ("containers: {a: {image: /a, devices: [gpu]}}", 1, "'gpu' is not a device", "nvidia, rocm"),
        ("containers: {a: {image: /a, variables: {MY_TOKEN: x}}}", 1, "suggests a secret", "outside"),
        ("guests: {a: {ssh: null}}", 1, "it needs ssh or topology", "a mapping with ssh"),
        ("guests: {a: {ssh: -oProxy=x}}", 1, "it cannot be '-oProxy=x'", "USER@HOST"),
        ("systems: {a: {}}", 1, "the key partitions is missing", "partitions takes"),
        ("systems: {a: {partitions: {}}}", 1, "it is empty", "names to partitions"),
        ("systems: {a: {partitions: {b: {nodes: 0}}}}", 1, "it cannot be 0", "integer >= 1"),
        ("systems: {a: {partitions: {b: {nodes: 1.5}}}}", 1, "it cannot be 1.5", "integer >= 1"),
        ("systems: {a: {partitions: {b: {nodes: 3, hosts: [x]}}}}", 1, "3 nodes, but 1 hosts", "remove one"),
        ("systems: {a: {partitions: {b: {hosts: [x, x]}}}}", 1, "'x' is listed twice", "keep one"),
        ("systems: {a: {partitions: {b: {hosts: ['-oProxy']}}}}", 1, "not a valid host name", "n001"),
        ("systems: {a: {partitions: {b: {launcher: lsf}}}}", 1, "it cannot be 'lsf'", "mpirun or srun"),
        (
            "environments: {own: {}}\nsystems: {a: {partitions: {b: {environments: [onw]}}}}",
            2,
            "unknown environment 'onw'",
            "own",
        ),
        ("systems: {a: {batch: sge, partitions: {b: }}}", 1, "it cannot be 'sge'", "slurm, pbs, lsf"),
        ("systems: {a: {poll: 10ms, partitions: {b: }}}", 1, "it cannot be '10ms'", "at least 1s"),
        ("systems: {a: {poll: soon, partitions: {b: }}}", 1, "'soon' is not a duration", "90s"),
        ("systems: {a: {partitions: {b: {account: 'x y'}}}}", 1, "it cannot be 'x y'", "without spaces"),
        ("systems: {a: {partitions: {b: {qos: '--uid=0'}}}}", 1, "it cannot be '--uid=0'", "without spaces"),
        ("systems: {a: {partitions: {b: {modules: ['$(id)']}}}}", 1, "it cannot be '$(id)'", "without spaces"),
        ('systems: {a: {partitions: {b: {extra: ["x\\ny"]}}}}', 1, "contains a line break", "several lines"),
        ("systems: {a: {partitions: {b: {exclusive: 1}}}}", 1, "it cannot be 1", "true"),
        ("systems: {a: {partitions: {b: {gpus_per_node: 0}}}}", 1, "it cannot be 0", "integer >= 1"),
        ("systems: {a: {partitions: {b: {time_limit: 5s}}}}", 1, "it cannot be '5s'", "at least 60s"),
        ("systems: {a: {partitions: {b: {python: python3}}}}", 1, "it cannot be 'python3'", "begins with /"),
        ("systems: {a: {partitions: {b: {shared: false}}}}", 1, "Python on the nodes needs", "python: none"),
        ("systems: {a: {partitions: {b: {scratch: tmp}}}}", 1, "it cannot be 'tmp'", "begins with /"),
        ("systems: {a: {partitions: {b: {scratch: '/$HOME'}}}}", 1, "it cannot be '/$HOME'", "begins with /"),
        ("a: 1\na: 2", 2, "given twice", ""),
        ("- 1", 1, "it cannot be [1]", "environments, containers, systems"),
        ("a: &x 1", 1, "the anchor &x is not accepted", ""),
    ],
)
def test_each_mistake_names_its_line_and_what_is_accepted(text: str, line: int, seen: str, todo: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read_site(text.encode(), "my.yaml")
    assert refusal.value.message.startswith(f"my.yaml: line {line}: ") and seen in refusal.value.message
    assert todo in refusal.value.todo


def test_the_first_of_several_mistakes_is_reported() -> None:
    with pytest.raises(UsageError, match=r"line 2: environments\.a\.mpi"):
        read_site(b"environments:\n  a: {mpi: 1}\n  b: {family: 2}\nsystems: 3\n", "f")


def test_a_file_that_is_too_large_or_not_text() -> None:
    with pytest.raises(UsageError, match="not a site file"):
        read_site(b"#" * (2 << 20), "f")
    with pytest.raises(UsageError, match="UTF-8"):
        read_site(b"a: \xff", "f")


def test_the_users_own_file_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert site_of(None) == Site()
    (tmp_path / "seatrial").mkdir()
    (tmp_path / "seatrial/site.yaml").write_text("environments: {own: {}}")
    assert [environment.name for environment in site_of(None).environments] == ["own"]
    with pytest.raises(UsageError, match="cannot be read"):
        site_of(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        site_of(tmp_path)


def test_errors_for_unknown_places_suggest_the_nearest() -> None:
    site = read_site(WHOLE.encode(), "site.yaml")
    assert site.place("tera").partition.name == "compute" and site.place("tera:fat").partition.name == "fat"
    with pytest.raises(UsageError, match=r"unknown system 'terra'\n.*did you mean tera"):
        site.place("terra")
    with pytest.raises(UsageError, match=r"unknown partition of tera: 'fatt'\n.*fat"):
        site.place("tera:fatt")
    with pytest.raises(UsageError, match="no site file found"):
        Site().place("tera")


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    check = jsonschema.Draft202012Validator(SCHEMAS["site"]())
    check.validate(read_yaml(WHOLE.encode(), "f").root.plain())
    for wrong in ({"environments": {"a b": {}}}, {"systems": {"a": {}}}, {"environments": {"a": {"family": "lam"}}}):
        assert not check.is_valid(wrong)


def test_every_key_has_a_description() -> None:
    schema = SCHEMAS["site"]()
    for model in (schema, *schema["$defs"].values()):
        assert all(place["description"] for place in model["properties"].values())


_WORDS = st.sampled_from(
    [
        "environments",
        "systems",
        "partitions",
        "mpi",
        "variables",
        "hosts",
        "nodes",
        "launcher",
        "flags",
        "a",
        "/x",
        "UCX",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.sampled_from(["environments", "systems"]), _VALUES))
def test_any_shape_is_a_site_or_a_message_with_a_line(content: object) -> None:
    try:
        read_site(json.dumps(content, indent=1).encode(), "f")
    except UsageError as refusal:
        assert refusal.message.startswith("f: line ")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_site_or_a_message(content: bytes) -> None:
    try:
        assert isinstance(read_site(content, "f"), Site)
    except UsageError as refusal:
        assert refusal.message.startswith("f: ")
