"""The archive: the program with its manual pages, completions and licences in one folder."""

from .files import Entry, Packing, gzipped, tar, zipped
from .program import Program, licences, readme, version


def make(program: Program, sbom: bytes, packing: Packing) -> dict[str, bytes]:
    platform = program.platform
    folder = f"mcp-elicit-{version()}-{platform.target}"
    files = {
        platform.program: Entry(program.data, 0o755),
        "README.md": Entry(readme().encode()),
        "sbom.cdx.json": Entry(sbom),
        **licences(),
        **{f"man/man1/{name}": page for name, page in program.manual_pages.items()},
        **{f"completions/{name}": script for name, script in program.completions.items()},
    }
    tree = {f"{folder}/{name}": entry for name, entry in sorted(files.items())}
    if platform.os == "win32":
        return {f"{folder}.zip": zipped(tree, packing)}
    return {f"{folder}.tar.gz": gzipped(tar(tree, packing), packing)}
