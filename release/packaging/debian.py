"""The Debian package: program, manual pages, completions, and a systemd unit that starts nothing by itself."""

import gzip
import hashlib
import os
import tempfile
import time
from pathlib import Path

from .files import Entry, Packing, with_folders, write_tree
from .program import REPOSITORY, ROOT, Program, run, version

MAINTAINER = "The mcp-elicit authors <mcp-elicit@users.noreply.github.com>"


def make(program: Program, packing: Packing) -> dict[str, bytes]:
    tree = {
        "usr/bin/mcp-elicit": Entry(program.data, 0o755),
        "usr/lib/systemd/system/mcp-elicit.service": Entry((ROOT / "release/debian/mcp-elicit.service").read_bytes()),
        "usr/share/bash-completion/completions/mcp-elicit": program.completions["bash/mcp-elicit"],
        "usr/share/zsh/vendor-completions/_mcp-elicit": program.completions["zsh/_mcp-elicit"],
        "usr/share/fish/vendor_completions.d/mcp-elicit.fish": program.completions["fish/mcp-elicit.fish"],
        "usr/share/doc/mcp-elicit/copyright": Entry(copyright_text().encode()),
        "usr/share/doc/mcp-elicit/changelog.gz": compressed(changelog(packing).encode()),
        "usr/share/doc/mcp-elicit/examples/gateway.toml": Entry((ROOT / "release/debian/gateway.toml").read_bytes()),
        **{f"usr/share/man/man1/{name}.gz": compressed(page.data) for name, page in program.manual_pages.items()},
    }
    size = sum(len(entry.data or b"") for entry in tree.values())
    tree["DEBIAN/control"] = Entry(control(program, size // 1024 + len(with_folders(tree))).encode())
    sums = [f"{hashlib.md5(entry.data).hexdigest()}  {name}\n" for name, entry in sorted(tree.items()) if not name.startswith("DEBIAN/")]
    tree["DEBIAN/md5sums"] = Entry("".join(sums).encode())
    name = f"mcp-elicit_{version()}_{program.platform.debian}.deb"
    with tempfile.TemporaryDirectory() as folder:
        stage, package = Path(folder) / "stage", Path(folder) / name
        write_tree(tree, stage, packing)
        stage.chmod(0o755)
        # Compressed by one thread: the blocks of several depend on the machine.
        compression = ["-Zgzip", "-z1"] if packing.fast else ["-Zxz", "-z6", "--threads-max=1"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(packing.epoch)}
        run("dpkg-deb", "--root-owner-group", *compression, "--build", stage, package, env=environment)
        return {name: package.read_bytes()}


def compressed(data: bytes) -> Entry:
    return Entry(gzip.compress(data, 9, mtime=0))


def control(program: Program, kibibytes: int) -> str:
    return f"""\
Package: mcp-elicit
Version: {version()}
Architecture: {program.platform.debian}
Maintainer: {MAINTAINER}
Installed-Size: {kibibytes}
Depends: {program.debian_depends}
Recommends: ca-certificates
Suggests: libnotify-bin
Section: net
Priority: optional
Homepage: {REPOSITORY}
Description: person answers what an MCP server asks
 An MCP server can ask a person during a call (elicitation). mcp-elicit shows
 such questions in a terminal or a browser, and as a gateway it holds them in
 an inbox for clients that cannot ask.
"""


def changelog(packing: Packing) -> str:
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(packing.epoch))
    return f"""\
mcp-elicit ({version()}) stable; urgency=medium

  * See {REPOSITORY}/blob/v{version()}/CHANGELOG.md

 -- {MAINTAINER}  {date}
"""


def copyright_text() -> str:
    def indented(text: str) -> str:
        return "".join(f" {line}\n" if line.strip() else " .\n" for line in text.strip().splitlines())

    holder = next(line for line in (ROOT / "LICENSE-MIT").read_text().splitlines() if line.startswith("Copyright"))
    return f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: mcp-elicit
Source: {REPOSITORY}

Files: *
Copyright: {holder.removeprefix("Copyright").replace("(c)", "").strip()}
License: Expat or Apache-2.0

License: Expat
{indented((ROOT / "LICENSE-MIT").read_text().split(chr(10) * 2, 1)[1])}
License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
"""
