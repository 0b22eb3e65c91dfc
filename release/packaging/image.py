"""The OCI image: the program and what it needs of Debian, without a shell, as one archive that every container tool reads."""

import json
import re
import subprocess
import tempfile
import time
from pathlib import Path

from .files import Entry, Packing, Tree, gzipped, sha256, tar, with_folders
from .program import REPOSITORY, BuildError, Program, run, version

USER = 65532
PACKAGES = ["base-files", "ca-certificates", "libc6", "libgcc-s1", "netbase", "tzdata"]
# What only a compiler, a shell or a reader of manuals would use.
LEFT_OUT = re.compile(
    r"usr/share/(man|info|locale|lintian|bug|doc/(?!.*/copyright$))|usr/lib/[^/]+/(gconv|audit)|etc/(update-motd\.d|profile\.d|ld\.so\.conf\.d)"
    r"|usr/sbin|sbin|usr/bin|etc/(ca-certificates|dpkg|init\.d)|var/lib/systemd|usr/share/zoneinfo/(posix|right)"
)


def fetch_packages(cache: Path, architecture: str) -> list[Path]:
    """Returns the Debian packages of the base layer; what is in the cache is not fetched again."""
    cache.mkdir(parents=True, exist_ok=True)
    missing = [name for name in PACKAGES if not list(cache.glob(f"{name}_*.deb"))]
    if missing:
        try:
            run("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *missing, cwd=cache)
        except (BuildError, FileNotFoundError) as error:
            raise BuildError(f"the image needs the Debian packages {', '.join(missing)} ({error}); run apt-get update, or add --without image") from None
    packages = sorted(cache.glob("*.deb"))
    for package in packages:
        found = run("dpkg-deb", "--field", package, "Architecture").strip()
        if found not in ("all", architecture):
            raise BuildError(f"{package.name} is for {found}, and the program for {architecture}; build the image on a machine of its platform")
    return packages


def make(program: Program, packages: list[Path], packing: Packing) -> dict[str, bytes]:
    architecture = program.platform.debian
    layers = [base_layer(packages), {"usr/bin/mcp-elicit": Entry(program.data, 0o755)}]
    blobs, descriptors, diff_ids = {}, [], []
    for layer in layers:
        packed = tar(layer, packing)
        diff_ids.append(f"sha256:{sha256(packed)}")
        descriptors.append(add(blobs, gzipped(packed, packing), "application/vnd.oci.image.layer.v1.tar+gzip"))
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(packing.epoch))
    labels = {
        "org.opencontainers.image.title": "mcp-elicit",
        "org.opencontainers.image.version": version(),
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": REPOSITORY,
        "org.opencontainers.image.created": created,
    }
    config = {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/bin", "HOME=/home/mcp-elicit", "MCP_ELICIT_STATE=/var/lib/mcp-elicit"],
            "Entrypoint": ["/usr/bin/mcp-elicit"],
            "Cmd": ["--help"],
            "WorkingDir": "/home/mcp-elicit",
            "Volumes": {"/var/lib/mcp-elicit": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created": created, "created_by": name} for name in ["Debian packages", "mcp-elicit"]],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": add(blobs, encoded(config), "application/vnd.oci.image.config.v1+json"),
        "layers": descriptors,
        "annotations": labels,
    }
    descriptor = add(blobs, encoded(manifest), manifest["mediaType"])
    descriptor |= {"platform": {"architecture": architecture, "os": "linux"}, "annotations": {"org.opencontainers.image.ref.name": version()}}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [descriptor]}
    layout = {
        "oci-layout": Entry(b'{"imageLayoutVersion":"1.0.0"}'),
        "index.json": Entry(encoded(index)),
        **{f"blobs/sha256/{digest}": Entry(data) for digest, data in blobs.items()},
    }
    return {f"mcp-elicit-{version()}-linux-{architecture}.oci.tar": tar(layout, packing)}


def add(blobs: dict[str, bytes], data: bytes, media_type: str) -> dict:
    digest = sha256(data)
    blobs[digest] = data
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def encoded(value: dict) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()


def base_layer(packages: list[Path]) -> Tree:
    """Returns the files of Debian that the program needs, and the entries by which scanners know their packages."""
    tree: Tree = {}
    for package in packages:
        fields = run("dpkg-deb", "--field", package)
        name = re.search(r"^Package: (.+)$", fields, re.MULTILINE)[1]
        tree[f"var/lib/dpkg/status.d/{name}"] = Entry(fields.encode())
        tree |= unpacked(package)
    merged = merge_usr(tree)
    certificates = [entry.data for name, entry in sorted(merged.items()) if name.startswith("usr/share/ca-certificates/") and name.endswith(".crt")]
    if not certificates:
        raise BuildError("the package ca-certificates has no certificates any more; look at release/packaging/image.py")
    merged["etc/ssl/certs/ca-certificates.crt"] = Entry(b"".join(certificates))
    merged["etc/passwd"] = Entry(f"root:x:0:0:root:/root:/sbin/nologin\nmcp-elicit:x:{USER}:{USER}:mcp-elicit:/home/mcp-elicit:/sbin/nologin\n".encode())
    merged["etc/group"] = Entry(f"root:x:0:\nmcp-elicit:x:{USER}:\n".encode())
    merged["etc/nsswitch.conf"] = Entry(b"passwd: files\ngroup: files\nhosts: files dns\n")
    merged["home/mcp-elicit"] = Entry(mode=0o700, owner=USER)
    merged["var/lib/mcp-elicit"] = Entry(mode=0o700, owner=USER)
    merged["tmp"] = Entry(mode=0o1777)
    return with_folders(merged)


def unpacked(package: Path) -> Tree:
    tree: Tree = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "--extract", str(package), folder], check=True)
        for path in sorted(Path(folder).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if LEFT_OUT.match(name):
                continue
            if path.is_symlink():
                tree[name] = Entry(target=path.readlink().as_posix())
            elif path.is_file():
                tree[name] = Entry(path.read_bytes(), path.stat().st_mode & 0o755)
    return tree


def merge_usr(tree: Tree) -> Tree:
    """Returns the tree with the folders that Debian merged into /usr as links."""
    merged: Tree = {}
    for name, entry in tree.items():
        top = name.split("/")[0]
        moved = f"usr/{name}" if top in ("lib", "lib64") and "/" in name else name
        merged[moved] = entry
    merged |= {"lib": Entry(target="usr/lib"), "lib64": Entry(target="usr/lib64")}
    return merged
