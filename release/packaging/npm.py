"""The npm packages: `mcp-elicit` with a launcher, and the program of each platform as an optional dependency."""

import json

from .files import Entry, Packing, gzipped, tar
from .program import PLATFORMS, REPOSITORY, ROOT, Program, licences, readme, version

COMMON = {
    "version": version(),
    "license": "MIT OR Apache-2.0",
    "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"},
    "homepage": REPOSITORY,
}


def make(program: Program, packing: Packing) -> dict[str, bytes]:
    """Returns the package of the program's platform."""
    platform = program.platform
    name = f"@mcp-elicit/cli-{platform.npm}"
    description = {
        "name": name,
        "description": f"The program of mcp-elicit for {platform.target}; install mcp-elicit, which chooses the platform",
        **COMMON,
        "os": [platform.os],
        "cpu": [platform.cpu],
        **({"libc": [platform.libc]} if platform.libc else {}),
        # Read by the launcher, which names it if the system's glibc is older.
        **({"glibc": ".".join(map(str, program.glibc))} if program.glibc else {}),
        "preferUnplugged": True,
        "files": ["bin"],
    }
    text = f"# {name}\n\nThe program of [mcp-elicit]({REPOSITORY}) for `{platform.target}`. Install `mcp-elicit`, which chooses the platform.\n"
    return package(f"mcp-elicit-cli-{platform.npm}", description, text, {f"bin/{platform.program}": Entry(program.data, 0o755)}, packing)


def make_launcher(packing: Packing) -> dict[str, bytes]:
    """Returns the package that people install; it is the same for all platforms."""
    description = {
        "name": "mcp-elicit",
        "description": "A person answers what an MCP server asks: command line, gateway and inbox for elicitation",
        **COMMON,
        "keywords": ["mcp", "elicitation", "model-context-protocol", "forms", "approval"],
        "engines": {"node": ">=18"},
        "bin": {"mcp-elicit": "bin/mcp-elicit.js"},
        "files": ["bin"],
        "optionalDependencies": {f"@mcp-elicit/cli-{platform.npm}": version() for platform in PLATFORMS.values()},
    }
    launcher = Entry((ROOT / "release/npm/mcp-elicit.js").read_bytes(), 0o755)
    return package("mcp-elicit", description, readme(), {"bin/mcp-elicit.js": launcher}, packing)


def package(name: str, description: dict, text: str, files: dict[str, Entry], packing: Packing) -> dict[str, bytes]:
    tree = {
        "package.json": Entry((json.dumps(description, indent=2) + "\n").encode()),
        "README.md": Entry(text.encode()),
        **licences(),
        **files,
    }
    packed = tar({f"package/{path}": entry for path, entry in tree.items()}, packing)
    return {f"{name}-{version()}.tgz": gzipped(packed, packing)}
