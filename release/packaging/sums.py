"""`SHA256SUMS` and its signature."""

import shutil
from pathlib import Path

from .files import Packing, sha256
from .program import BuildError, run, version

TEST_KEY = "test-key.pub"


def write(folder: Path) -> None:
    """Writes the digest of every file of the folder."""
    files = sorted(path for path in folder.iterdir() if path.name not in ("SHA256SUMS", "SHA256SUMS.minisig", TEST_KEY))
    (folder / "SHA256SUMS").write_text("".join(f"{sha256(path.read_bytes())}  {path.name}\n" for path in files))


def sign(folder: Path, key: Path | None, packing: Packing) -> str:
    """Signs the list, with a key made on the spot if none is given; returns a sentence about the key."""
    if not shutil.which("minisign"):
        raise BuildError("minisign is missing: apt-get install minisign, or leave the signature out: --without signature")
    comment = f"mcp-elicit {version()}, {packing.day()}"
    sums = folder / "SHA256SUMS"
    if key is not None:
        # The key's password is asked for in the terminal.
        run("minisign", "-S", "-s", key, "-m", sums, "-t", comment, "-c", "signature of mcp-elicit", stdin=None)
        return f"SHA256SUMS is signed with {key}"
    secret = folder / "test-key.sec"
    try:
        run("minisign", "-G", "-W", "-s", secret, "-p", folder / TEST_KEY)
        run("minisign", "-S", "-s", secret, "-m", sums, "-t", f"{comment}, TEST KEY", "-c", "signature with a test key")
    finally:
        secret.unlink(missing_ok=True)
    return "SHA256SUMS is signed with a TEST KEY that was made now and is gone: it proves nothing to others; sign a release with --key FILE"
