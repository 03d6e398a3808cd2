"""The commands that runtimes build, images by their content, and what failures mean: nothing is started."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.launch.mpi import rank_command
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment import container as names
from seatrial.model.environment.container import devices_of
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.places.containers import runtime, runtimes
from seatrial.places.containers.faults import fault_in, not_started, ranks_fault
from seatrial.places.containers.image import ContainerError, Image, ImageKind, image_of
from seatrial.places.containers.runtime import Inside, Mount
from seatrial.places.containers.runtimes import RUNTIMES, runtime_for
from seatrial.places.containers.tiny_root import write_root

R, P = Path("/results/1"), Path("/cache/x")
MOUNTS = (Mount(R, R), Mount(P, P))
VARIABLES = {"A": "b c"}
STORED = Image("site/app:1", ImageKind.NAME, "")
FILE = Image("/images/a.sif", ImageKind.SIF, "sha256:1")
SQUASHED = Image("/images/a.sqfs", ImageKind.SQUASHFS, "sha256:1")
TMP = runtime.SHARED

COMMANDS = {
    "apptainer": (FILE, ["apptainer", "exec", "--bind", f"{TMP}:{TMP}", "--sharens", "--bind", f"{R}:{R}", "--bind",
                         f"{P}:{P}", "--env", "A=b c", "/images/a.sif"]),
    "singularity": (FILE, ["singularity", "exec", "--bind", f"{TMP}:{TMP}", "--sharens", "--bind", f"{R}:{R}",
                           "--bind", f"{P}:{P}", "--env", "A=b c", "/images/a.sif"]),
    "docker": (STORED, ["docker", "run", "--rm", "--pull=never", "--init", "--network=host", "--ipc=host", "--uts=host",
                        "--user=1000:1000", "-v", f"{TMP}:{TMP}", "-v", f"{R}:{R}", "-v", f"{P}:{P}", "-e", "A=b c",
                        "site/app:1"]),
    "enroot": (SQUASHED, ["enroot", "start", "--mount", f"{TMP}:{TMP}", "--mount", f"{R}:{R}", "--mount",
                          f"{P}:{P}", "--env", "A=b c", "/images/a.sqfs"]),
    "sarus": (STORED, ["sarus", "run", f"--mount=type=bind,source={TMP},destination={TMP}",
                       f"--mount=type=bind,source={R},destination={R}",
                       f"--mount=type=bind,source={P},destination={P}", "--env=A=b c", "site/app:1"]),
    "shifter": (STORED, ["shifter", "--image=site/app:1", f"--volume={TMP}:{TMP}", f"--volume={R}:{R}",
                         f"--volume={P}:{P}", "--env=A=b c", "--"]),
    "pyxis": (SQUASHED, ["srun", "--ntasks=1", "--nodes=1", "--nodelist=node1", "--overlap", "--cpu-bind=none",
                         "--input=none", "--container-image=/images/a.sqfs",
                         f"--container-mounts={TMP}:{TMP},{R}:{R},{P}:{P}", "--no-container-mount-home",
                         "--no-container-remap-root", "--no-container-entrypoint", "--export=ALL,A=b c",
                         "--container-env=A"]),
    "charliecloud": (SQUASHED, ["ch-run", f"--bind={R}:{R}", f"--bind={P}:{P}", "--set-env=A=b c", "--env-no-expand",
                                "/images/a.sqfs", "--"]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("os.getegid", lambda: 1000)
    monkeypatch.setenv("SLURMD_NODENAME", "node1")
    image, words = COMMANDS[name]
    assert image.kind in RUNTIMES[name].kinds
    assert RUNTIMES[name].prefix(Inside(image, MOUNTS, VARIABLES, is_shared=True)) == words


WORKS_IN = {
    "apptainer": ["--pwd", "/mnt/1"],
    "singularity": ["--pwd", "/mnt/1"],
    "bubblewrap": ["--chdir", "/mnt/1"],
    "charliecloud": ["--cd=/mnt/1"],
    "podman": ["--workdir", "/mnt/1"],
    "docker": ["--workdir", "/mnt/1"],
    "nspawn": ["--chdir=/mnt/1"],
    "sarus": ["--workdir=/mnt/1"],
    "shifter": ["--workdir=/mnt/1"],
    "pyxis": ["--container-workdir=/mnt/1"],
}


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_folder_that_a_program_works_in(name: str, tmp_path: Path) -> None:
    inside = Inside(Image(str(tmp_path), ImageKind.FOLDER, ""), works_in=Path("/mnt/1"))
    if name not in WORKS_IN:
        with pytest.raises(ContainerError, match="cannot start a program in a folder"):
            RUNTIMES[name].prefix(inside)
        return
    words, wanted = RUNTIMES[name].prefix(inside), WORKS_IN[name]
    assert any(words[k : k + len(wanted)] == wanted for k in range(len(words)))


def test_bubblewrap_mounts_where_it_can(tmp_path: Path) -> None:
    (tmp_path / "root" / ".cache").mkdir(parents=True)
    image = Image(str(tmp_path), ImageKind.FOLDER, "")
    folders = [Path("/data/1"), Path("/root/.cache"), Path("/root/results")]
    mounts = RUNTIMES["bubblewrap"].mounts(image, folders)
    assert [str(mount.inside) for mount in mounts] == ["/data/1", "/root/.cache", "/.seatrial-mounts/2"]


def test_every_runtime_is_known_by_its_name() -> None:
    assert tuple(RUNTIMES) == names.RUNTIMES
    assert not any(
        RUNTIMES[name].is_verified for name in ("docker", "enroot", "sarus", "shifter", "apptainer", "pyxis")
    )


def test_root_gets_what_the_runtimes_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(runtimes, "_UNIFIED", tmp_path / "missing")
    monkeypatch.setattr(runtimes, "on_path", lambda name: f"/usr/bin/{name}")
    image = Image(str(tmp_path), ImageKind.FOLDER, "")
    words = RUNTIMES["podman"].prefix(Inside(image))
    assert (
        words[:7] == ["unshare", "--mount", "--propagation", "slave", "podman", "--runtime", "runc"]
        and "nofile=1024:1024" in words
    )
    assert words[-2:] == ["--rootfs", f"{tmp_path}:O"]
    assert "--userns" in RUNTIMES["apptainer"].prefix(Inside(FILE))
    monkeypatch.setattr(runtimes, "_UNIFIED", tmp_path)
    assert "--runtime" not in RUNTIMES["podman"].prefix(Inside(image))


GIVEN = (Mount(Path("/data"), Path("/opt/d")), Mount(Path("/lib/x"), Path("/x"), is_read_only=True))
ADDED = {
    "apptainer": ["--bind", "/data:/opt/d", "--bind", "/lib/x:/x:ro"],
    "docker": ["-v", "/data:/opt/d", "-v", "/lib/x:/x:ro"],
    "podman": ["-v", "/data:/opt/d", "-v", "/lib/x:/x:ro"],
    "enroot": ["--mount", "/data:/opt/d", "--mount", "/lib/x:/x:none:x-create=auto,bind,ro"],
    "nspawn": ["--bind=/data:/opt/d", "--bind-ro=/lib/x:/x"],
    "sarus": [
        "--mount=type=bind,source=/data,destination=/opt/d",
        "--mount=type=bind,source=/lib/x,destination=/x,readonly",
    ],
    "shifter": ["--volume=/data:/opt/d", "--volume=/lib/x:/x:ro"],
    "pyxis": [f"--container-mounts={TMP}:{TMP},/data:/opt/d,/lib/x:/x:ro,{R}:{R},{P}:{P}"],
    "bubblewrap": ["--bind", "/data", "/opt/d", "--ro-bind", "/lib/x", "/x"],
}


@pytest.mark.parametrize("name", ADDED)
def test_mounts_of_the_user_come_before_ours(name: str, tmp_path: Path) -> None:
    inside = Inside(Image(str(tmp_path), ImageKind.FOLDER, ""), MOUNTS, added=GIVEN)
    words = "\n".join(RUNTIMES[name].prefix(inside))
    assert words.index("\n".join(ADDED[name])) < words.index(str(R))
    assert inside.mapped("/data/x") == "/data/x", "paths of the user's mounts are those of the image"


DEVICES = {
    "apptainer": {"nvidia": ["--nv"], "rocm": ["--rocm"]},
    "podman": {
        "nvidia": ["--device", "nvidia.com/gpu=all"],
        "rocm": ["--device", "/dev/kfd", "--device", "/dev/dri"],
        "nvidia.com/gpu=0": ["--device", "nvidia.com/gpu=0"],
    },
    "docker": {"nvidia": ["--gpus", "all"], "nvidia.com/gpu=all": ["--device", "nvidia.com/gpu=all"]},
    "enroot": {"nvidia": ["--env", "NVIDIA_VISIBLE_DEVICES=all"]},
    "shifter": {"nvidia": ["--module=gpu"]},
    "charliecloud": {"nvidia": [], "rocm": []},
}


@pytest.mark.parametrize("name", DEVICES)
def test_devices(name: str) -> None:
    image = Image("/images/a", ImageKind.FOLDER, "")
    bare = RUNTIMES[name].prefix(Inside(image))
    for device, words in DEVICES[name].items():
        found = RUNTIMES[name].prefix(Inside(image, devices=devices_of([device])))
        assert len(found) == len(bare) + len(words) and "\n".join(words) in "\n".join(found)


@pytest.mark.parametrize(
    ("name", "device"),
    [("nspawn", "nvidia"), ("apptainer", "nvidia.com/gpu=all"), ("enroot", "rocm"), ("pyxis", "rocm")],
)
def test_devices_that_a_runtime_cannot_give(name: str, device: str) -> None:
    with pytest.raises(ContainerError, match=f"cannot give a container the device {device}"):
        RUNTIMES[name].prefix(Inside(Image("/images/a", ImageKind.FOLDER, ""), devices=devices_of([device])))


def test_pyxis_is_a_part_of_srun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its options are among those of the launcher, which starts the program that places a rank inside. A variable with
    a comma, and what enroot's hooks ask for, are those of srun, which passes its own on."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    mpi = Mpi("openmpi", MpiFamily.OPENMPI, "5", Path("/libmpi.so"), "", (), (), Path("mpirun"))
    starter = rank_command(replace(mpi, launcher=Path(RUNTIMES["pyxis"].launcher)), Layout(4, hosts=("a", "b")))
    blank = Mount(Path("/my results"), Path("/my results"))
    inside = Inside(SQUASHED, (blank,), {"BTL": "self,vader", "B": "2"}, devices=devices_of(["nvidia"]))
    words = RUNTIMES["pyxis"].of_ranks(starter.argv, ["/cache/place", "--"], inside)
    assert words[:5] == ["env", "BTL=self,vader", "NVIDIA_VISIBLE_DEVICES=all", "srun", "--ntasks=4"]
    assert words[words.index("--container-image=/images/a.sqfs") :] == [
        "--container-image=/images/a.sqfs",
        rf"--container-mounts={TMP}:{TMP},/my\040results:/my\040results",
        *("--no-container-mount-home", "--no-container-remap-root", "--no-container-entrypoint"),
        *("--export=ALL,B=2", "--container-env=BTL,B,NVIDIA_VISIBLE_DEVICES", "/cache/place", "--"),
    ]
    assert "--mpi=pmix" in words


def test_pyxis_needs_its_plug_in_and_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    srun = tmp_path / "srun"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    for text, why in (("--mpi", "no srun on PATH that has it"), ("--container-image=PATH", "this is none")):
        srun.write_text(f"#!/bin/sh\necho ' {text}'\n")
        srun.chmod(0o755)
        runtimes._has_plug_in.cache_clear()
        with pytest.raises(ContainerError, match=why):
            runtime_for(SQUASHED, "pyxis")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert runtime_for(SQUASHED, "pyxis").title == "pyxis"
    with pytest.raises(ContainerError, match=r"pyxis does not start site/app:1, which is a local image"):
        runtime_for(STORED, "pyxis")


def test_a_folder_of_ours_in_a_mount_of_the_user() -> None:
    image = Image("/images/a", ImageKind.FOLDER, "")
    same = Mount(Path("/results"), Path("/results"))
    assert RUNTIMES["podman"].mounts(image, [R], [same]) == (Mount(R, R),)
    with pytest.raises(ContainerError, match="would be inside /scratch, which is mounted at /results"):
        RUNTIMES["podman"].mounts(image, [R], [Mount(Path("/scratch"), Path("/results"))])


def test_charliecloud_mounts_at_empty_folders_of_the_image(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    assert write_root(root)
    (root / "srv" / "data").write_text("full")
    image = image_of(str(root))
    mounts = RUNTIMES["charliecloud"].mounts(image, [R, TMP / "x", P])
    assert mounts == (Mount(R, Path("/mnt")), Mount(P, Path("/media")))
    beside = RUNTIMES["charliecloud"].mounts(image, [R], [Mount(Path("/d"), Path("/mnt/d"))])
    assert beside == (Mount(R, Path("/media")),)
    inside = Inside(image, mounts)
    assert inside.mapped(f"{R}/rank") == "/mnt/rank" and inside.mapped(f"{R}0") == f"{R}0"
    for name in ("mnt", "media", "opt"):
        (root / name).rmdir()
    with pytest.raises(ContainerError, match="0 empty folders to mount 2 folders"):
        RUNTIMES["charliecloud"].mounts(image, [R, P])


def test_bubblewrap_puts_the_root_together(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    words = RUNTIMES["bubblewrap"].prefix(Inside(image_of(str(tmp_path)), MOUNTS))
    assert words[:7] == ["bwrap", "--symlink", "usr/bin", "/bin", "--ro-bind", f"{tmp_path}/usr", "/usr"]
    assert f"{tmp_path}/proc" not in words


def test_images_are_known_by_their_content(tmp_path: Path) -> None:
    files = {"a.sqfs": b"hsqs" + bytes(600), "a.img": bytes(32) + b"SIF_MAGIC" + bytes(600)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("oci-layout"))
    (tmp_path / "a.tar").write_bytes(archive.getvalue())
    found = [image_of(str(tmp_path / name)).kind for name in (*files, "a.tar")]
    assert found == [ImageKind.SQUASHFS, ImageKind.SIF, ImageKind.ARCHIVE]
    assert image_of("debian:12").kind is ImageKind.NAME
    (tmp_path / "text").write_text("no image")
    (tmp_path / "a:b").mkdir()
    with pytest.raises(ContainerError, match="has a character that runtimes take for the end of a path"):
        RUNTIMES["podman"].require(image_of(str(tmp_path / "a:b")))
    for text, why in (("/no/such", "cannot be read"), (f"{tmp_path}/text", "not an image"), ("a b", "neither")):
        with pytest.raises(ContainerError, match=why):
            image_of(text)


def test_a_copy_is_the_same_image(tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b", "c", "d"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "x").write_text("y" if name == "c" else "x")
        (tmp_path / name / "link").symlink_to("bin/z" if name == "d" else "bin/x")
        digests.append(image_of(str(tmp_path / name)).digest)
    assert digests[0] == digests[1] and len(set(digests)) == 3


def test_a_runtime_that_cannot_start_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "on_path", lambda name: name if name == "ch-run" else None)
    with pytest.raises(ContainerError, match=r"Charliecloud does not start .* which is a SIF; it starts: folder"):
        runtime_for(FILE, "charliecloud")
    with pytest.raises(ContainerError, match="no apptainer on PATH"):
        runtime_for(FILE, "apptainer")
    with pytest.raises(ContainerError, match=r"no runtime for /images/a.sif"):
        runtime_for(FILE, None)
    assert runtime_for(SQUASHED, None).name == "charliecloud"


WORDS = {
    "old C library": "/w/p: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /w/p)",
    "newer instruction set": "/w/p: CPU ISA level is lower than required",
    "missing MPI library": "p: error while loading shared libraries: libmpi.so.40: cannot open shared object file: No",
    "missing library": "p: error while loading shared libraries: libgomp.so.1: cannot open shared object file: No such",
    "missing driver": "error while loading shared libraries: libcuda.so.1: cannot open shared object file",
    "shared memory of UCX": "mm_ep.c:171  UCX  ERROR   mm ep failed to connect to remote FIFO: Shared memory error",
    "control groups": "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers",
    "limits": "Error: runc: error setting rlimit type 7: operation not permitted: OCI permission denied",
    "no user namespaces": "ch-run[1]: error: can't init user+mount namespaces: clone: Operation not permitted",
    "descriptors of the launcher": "MPIR_pmi_init(110)...: PMI_Get_appnum returned -1",
    "launcher of another library": "  plm_rsh_agent: ssh : rsh",
    "no such program": "ch-run[7]: error: can't execve(2): /bin/x: No such file or directory",
    "root needed": "Need to be root.",
    "another user inside": "[vm:604] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",
    "no such image": "Error: nosuchimage:1: image not known",
    "CDI": "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
    "mount point": "ch-run[1]: error: can't mkdir: /var/tmp/root.ch/mnt/x: Read-only file system (ch_misc.c:409 30)",
}


@pytest.mark.parametrize(
    "words",
    [
        "bwrap: execvp /.seatrial-mounts/0/peak: No such file or directory",
        "exec /root/.cache/peak: no such file or directory",
        "execv(/root/.cache/peak) failed: No such file or directory",
        "ch-run[1]: error: can't execve(2): /mnt/peak: No such file or directory",
    ],
)
def test_a_program_whose_loader_is_missing(words: str) -> None:
    fault = fault_in(words)
    assert fault is not None and fault.name == "no such program"


@pytest.mark.parametrize("name", WORDS)
def test_the_words_of_a_fault(name: str) -> None:
    fault = fault_in(f"something else\n{WORDS[name]}\n")
    assert fault is not None and fault.name == name
    error = not_started("p does not start", WORDS[name])
    assert name in error.message and fault.cause in error.message and error.todo == fault.remedy


def test_unknown_words_are_shown() -> None:
    assert "all is lost" in not_started("p does not start", "one\ntwo\nall is lost\n").message


MET = {"rank": 0, "size": 2, "cross_memory_error": 0, "message_arrived": True}


def faulty(*notes: dict[str, object], timed_out: bool = False, failed: bool = False, output: str = "") -> str:
    error = ranks_fault(notes, 2, "outside", timed_out=timed_out, failed=failed, output=output)
    return "" if error is None else str(error)


def test_how_far_ranks_came() -> None:
    assert faulty(MET, {**MET, "rank": 1}) == ""
    alone = {"rank": 0, "size": 1}
    assert "2 times rank 0 of 1" in faulty(alone, alone)
    stuck = {"rank": 0, "size": 2, "cross_memory_error": 1}
    assert "hang at a message of 4 MiB (no cross-memory attach)" in faulty(stuck, stuck, timed_out=True)
    assert "do not exchange a message of 4 MiB in time" in faulty(
        {**stuck, "cross_memory_error": 0}, stuck | {"cross_memory_error": 0}, timed_out=True
    )
    assert "do not return from MPI_Init in time" in faulty({}, {}, timed_out=True)
    assert "shared memory of UCX" in faulty({}, {}, failed=True, output=WORDS["shared memory of UCX"])
    assert "no rank started" in faulty(failed=True, output="lost")
    assert "1 of 2 ranks started MPI" in faulty(MET)
    assert "fail: 2 of 2 ranks" in faulty(MET, {"rank": 1, "size": 2, "cross_memory_error": 0})
