"""The program that is packaged: its platform, what it needs, and what it says about itself."""

import json
import re
import subprocess
import tempfile
import tomllib
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .files import Entry, Tree

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/mcp-elicit/mcp-elicit"

# Libraries that every glibc system of the manylinux platforms has; a program that needs another one cannot be packaged.
MANYLINUX = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
DEBIAN_PACKAGES = {"libgcc_s.so.1": "libgcc-s1"}


class BuildError(Exception):
    """A reason why there is no release, with the next step."""


@dataclass(frozen=True)
class Platform:
    """A target of the Rust compiler, as each registry names it."""

    target: str
    npm: str
    os: str
    cpu: str
    libc: str | None = None
    wheel: str | None = None
    debian: str | None = None

    @property
    def program(self) -> str:
        return "mcp-elicit.exe" if self.os == "win32" else "mcp-elicit"


PLATFORMS = {
    platform.target: platform
    for platform in [
        Platform("x86_64-unknown-linux-gnu", "linux-x64", "linux", "x64", "glibc", debian="amd64"),
        Platform("aarch64-unknown-linux-gnu", "linux-arm64", "linux", "arm64", "glibc", debian="arm64"),
        Platform("x86_64-unknown-linux-musl", "linux-x64-musl", "linux", "x64", "musl", "musllinux_1_2_x86_64"),
        Platform("aarch64-unknown-linux-musl", "linux-arm64-musl", "linux", "arm64", "musl", "musllinux_1_2_aarch64"),
        Platform("x86_64-apple-darwin", "darwin-x64", "darwin", "x64", wheel="macosx_10_12_x86_64"),
        Platform("aarch64-apple-darwin", "darwin-arm64", "darwin", "arm64", wheel="macosx_11_0_arm64"),
        Platform("x86_64-pc-windows-msvc", "win32-x64", "win32", "x64", wheel="win_amd64"),
    ]
}


def version() -> str:
    """Returns the version of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def run(*command: str | Path, **options) -> str:
    """Returns the output of a command; one that fails is an error with its last words."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(str(part) for part in command)} failed ({done.returncode}):\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


class Program:
    """A program that was built for one platform, without its symbols; on Linux with a list of its crates inside."""

    def __init__(self, path: Path, platform: Platform, crates: bytes):
        self.platform = platform
        with tempfile.TemporaryDirectory() as folder:
            stripped = Path(folder) / platform.program
            if platform.os == "win32":
                stripped = path
            else:
                run("strip", "-o", stripped, path)
            if platform.os == "linux":
                # A digest of what the linker wrote, symbols included, whose names differ from build to build.
                run("objcopy", "--remove-section", ".note.gnu.build-id", stripped)
                put_crates_inside(stripped, crates)
            self.data = stripped.read_bytes()
            self.manual_pages, self.completions = self._described(stripped)
            self.dynamic = run("readelf", "--dynamic", "--version-info", "--wide", stripped) if platform.os == "linux" else ""

    def _described(self, path: Path) -> tuple[Tree, Tree]:
        """Returns the manual pages and the completions, from the program's own commands."""
        with tempfile.TemporaryDirectory() as folder:
            run(path, "man", folder)
            pages = {page.name: Entry(page.read_bytes()) for page in sorted(Path(folder).iterdir())}
        names = {"bash": "mcp-elicit", "zsh": "_mcp-elicit", "fish": "mcp-elicit.fish"}
        return pages, {f"{shell}/{name}": Entry(run(path, "completions", shell).encode()) for shell, name in names.items()}

    @cached_property
    def needed(self) -> set[str]:
        """The shared libraries that the program names."""
        return set(re.findall(r"\(NEEDED\).*\[(.+)\]", self.dynamic))

    @cached_property
    def glibc(self) -> tuple[int, int] | None:
        """The lowest glibc that has every symbol of the program; nothing for a static one."""
        found = [tuple(map(int, number)) for number in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", self.dynamic)]
        return max(found, default=None)

    def check_libraries(self) -> None:
        """Fails if the program needs a library that a system of its platform may lack."""
        extra = self.needed - MANYLINUX
        if extra:
            raise BuildError(f"the program needs {', '.join(sorted(extra))}, which not every Linux has; link it statically")
        if self.platform.libc == "musl" and self.needed:
            raise BuildError(f"a musl program must be static, but it needs {', '.join(sorted(self.needed))}; build with -C target-feature=+crt-static")
        if self.platform.libc == "glibc" and not self.glibc:
            raise BuildError("the program names no symbol of glibc; is it one for musl?")

    @property
    def wheel_platform(self) -> str:
        """The platform tag of a wheel, with the glibc that the program really needs."""
        if self.platform.libc != "glibc":
            return self.platform.wheel
        machine = self.platform.target.split("-")[0]
        return f"manylinux_{self.glibc[0]}_{self.glibc[1]}_{machine}"

    @property
    def debian_depends(self) -> str:
        """The dependencies of a Debian package, from the symbols and libraries of the program."""
        others = sorted(DEBIAN_PACKAGES[name] for name in self.needed if name in DEBIAN_PACKAGES)
        return ", ".join([f"libc6 (>= {self.glibc[0]}.{self.glibc[1]})", *others])


CRATES_SECTION = ".dep-v0"


def put_crates_inside(path: Path, crates: bytes):
    """Adds a list of crates to an ELF program, in place of the one that it may have."""
    # `cargo auditable` would do it while it builds, but its own path is then a part of the names of our crates, so that no
    # two folders build the same program.
    with tempfile.TemporaryDirectory() as folder:
        section = Path(folder) / "section"
        section.write_bytes(zlib.compress(crates, 9))
        run("objcopy", "--remove-section", CRATES_SECTION, path)
        run("objcopy", "--add-section", f"{CRATES_SECTION}={section}", "--set-section-flags", f"{CRATES_SECTION}=readonly,data", path)


def crates_inside(path: Path) -> dict:
    """Returns the list of crates inside an ELF program."""
    with tempfile.TemporaryDirectory() as folder:
        section = Path(folder) / "section"
        run("objcopy", "--dump-section", f"{CRATES_SECTION}={section}", path, f"{folder}/copy")
        return json.loads(zlib.decompress(section.read_bytes()))


def readme() -> str:
    """Returns the README for a registry: links and pictures are absolute, at the tag of this version."""
    tag = f"v{version()}"
    text = (ROOT / "README.md").read_text()
    text = re.sub(r'src="(?!https?:)([^"]+)"', rf'src="https://raw.githubusercontent.com/mcp-elicit/mcp-elicit/{tag}/\1"', text)
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({REPOSITORY}/blob/{tag}/\1)", text)


def licences() -> Tree:
    return {name: Entry((ROOT / name).read_bytes()) for name in ["LICENSE-APACHE", "LICENSE-MIT"]}
