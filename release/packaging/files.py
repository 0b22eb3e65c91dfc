"""Archives whose bytes depend only on their contents: sorted entries, one time, no names of users."""

import gzip
import hashlib
import io
import os
import tarfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A file of an archive; without data it is a folder, with a target a symbolic link."""

    data: bytes | None = None
    mode: int = 0o644
    target: str | None = None
    owner: int = 0


Tree = dict[str, Entry]


@dataclass(frozen=True)
class Packing:
    """How every archive of one build is packed."""

    epoch: int
    fast: bool = False
    level: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "level", 1 if self.fast else 9)

    def day(self) -> str:
        return time.strftime("%Y-%m-%d", time.gmtime(self.epoch))


def tar(tree: Tree, packing: Packing) -> bytes:
    """Returns a tar file of the tree, with the folders that its names imply."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, entry in sorted(with_folders(tree).items()):
            info = tarfile.TarInfo(name)
            info.mtime, info.mode, info.uid, info.gid = packing.epoch, entry.mode, entry.owner, entry.owner
            if entry.target is not None:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
            elif entry.data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(entry.data)
            archive.addfile(info, io.BytesIO(entry.data or b""))
    return buffer.getvalue()


def with_folders(tree: Tree) -> Tree:
    """Returns the tree with an entry for each folder above its files."""
    whole = dict(tree)
    for name in tree:
        for parent in Path(name).parents:
            if parent != Path("."):
                whole.setdefault(parent.as_posix(), Entry(mode=0o755))
    return whole


def gzipped(data: bytes, packing: Packing) -> bytes:
    """Returns the data compressed, with no name and no time of a build in its header."""
    return gzip.compress(data, packing.level, mtime=0)


def zipped(tree: Tree, packing: Packing) -> bytes:
    """Returns a zip file of the tree, in its own order."""
    moment = time.gmtime(max(packing.epoch, 315532800))[:6]  # a zip file knows no time before 1980
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=packing.level) as archive:
        for name, entry in tree.items():
            info = zipfile.ZipInfo(name, moment)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (0o100000 | entry.mode) << 16
            archive.writestr(info, entry.data, compresslevel=packing.level)
    return buffer.getvalue()


def write_tree(tree: Tree, folder: Path, packing: Packing) -> None:
    """Writes the tree into a folder, with its modes and the time of the build."""
    for name, entry in sorted(with_folders(tree).items()):
        path = folder / name
        if entry.data is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data)
        path.chmod(entry.mode)
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (packing.epoch, packing.epoch))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
