"""The list of the crates in the program (CycloneDX 1.6), as cargo resolves them for its platform."""

import json
import re
import tomllib
from urllib.parse import quote

from .files import Packing
from .program import REPOSITORY, ROOT, Platform, run, version


def make(platform: Platform, packing: Packing) -> bytes:
    """Returns the list with licences, digests and dependencies; what only builds or tests the program is not in it."""
    options = ["--locked", "--manifest-path", ROOT / "crates/cli/Cargo.toml", "--features", "full"]
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--filter-platform", platform.target, *options))
    # `cargo metadata` joins the features that tests ask for; `cargo tree` names exactly what is linked.
    tree = run("cargo", "tree", "--edges", "normal", "--prefix", "none", "--target", platform.target, *options)
    linked = set(re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE))
    checksums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    packages = {package["id"]: package for package in metadata["packages"] if (package["name"], package["version"]) in linked}
    components = {identifier: component(package, checksums) for identifier, package in packages.items()}
    main = next(identifier for identifier, package in packages.items() if package["name"] == "mcp-elicit")
    edges = []
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in components:
            to = [
                components[dependency["pkg"]]["bom-ref"]
                for dependency in node["deps"]
                if dependency["pkg"] in components and any(kind["kind"] is None for kind in dependency["dep_kinds"])
            ]
            edges.append({"ref": components[node["id"]]["bom-ref"], "dependsOn": sorted(to)})
    root = {**components.pop(main), "type": "application"}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": f"{packing.day()}T00:00:00Z",
            "component": root,
            "properties": [{"name": "cdx:rustc:sbom:target:triple", "value": platform.target}],
        },
        "components": sorted(components.values(), key=lambda each: each["bom-ref"]),
        "dependencies": sorted(edges, key=lambda each: each["ref"]),
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def file_name(platform: Platform) -> str:
    return f"mcp-elicit-{version()}-{platform.target}.cdx.json"


def component(package: dict, checksums: dict) -> dict:
    name = f"pkg:cargo/{package['name']}@{quote(package['version'])}"
    found = {"type": "library", "bom-ref": name, "name": package["name"], "version": package["version"], "purl": name}
    if package.get("description"):
        found["description"] = " ".join(package["description"].split())
    if package.get("license"):
        # "MIT/Apache-2.0" is how old crates write a choice.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    source = package.get("repository") or (REPOSITORY if package["name"].startswith("mcp-elicit") else None)
    if source:
        found["externalReferences"] = [{"type": "vcs", "url": source}]
    return found
