"""The wheel: the program as a script of a Python distribution, without any Python."""

import base64
import hashlib

from .files import Entry, Packing, zipped
from .program import REPOSITORY, Program, licences, readme, version


def make(program: Program, sbom: bytes, packing: Packing) -> dict[str, bytes]:
    tag = f"py3-none-{program.wheel_platform}"
    info = f"mcp_elicit-{version()}.dist-info"
    tree = {f"mcp_elicit-{version()}.data/scripts/{program.platform.program}": Entry(program.data, 0o755)}
    tree |= {f"{info}/licenses/{name}": entry for name, entry in licences().items()}
    tree[f"{info}/sboms/mcp-elicit.cdx.json"] = Entry(sbom)
    tree[f"{info}/METADATA"] = Entry(metadata().encode())
    tree[f"{info}/WHEEL"] = Entry(f"Wheel-Version: 1.0\nGenerator: mcp-elicit\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    tree[f"{info}/RECORD"] = Entry(record(tree, f"{info}/RECORD").encode())
    return {f"mcp_elicit-{version()}-{tag}.whl": zipped(tree, packing)}


def metadata() -> str:
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", "mcp-elicit"),
        ("Version", version()),
        ("Summary", "A person answers what an MCP server asks: command line, gateway and inbox for elicitation"),
        ("Keywords", "mcp,elicitation,model-context-protocol,forms"),
        ("License-Expression", "MIT OR Apache-2.0"),
        *[("License-File", name) for name in sorted(licences())],
        ("Classifier", "Environment :: Console"),
        ("Classifier", "Programming Language :: Rust"),
        ("Project-URL", f"Source, {REPOSITORY}"),
        ("Project-URL", f"Changelog, {REPOSITORY}/blob/main/CHANGELOG.md"),
        ("Requires-Python", ">=3.8"),
        ("Description-Content-Type", "text/markdown"),
    ]
    return "".join(f"{name}: {value}\n" for name, value in fields) + "\n" + readme()


def record(tree: dict[str, Entry], own: str) -> str:
    """Returns the list of files with digest and size; the list itself has neither."""
    lines = []
    for name, entry in tree.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(entry.data)}\n")
    return "".join(lines) + f"{own},,\n"
