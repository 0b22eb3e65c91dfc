"""The list of the crates in the program (CycloneDX 1.6), as cargo resolves them for its platform."""

import json
import re
import tomllib
from functools import cache
from urllib.parse import quote

from .files import Packing
from .program import REPOSITORY, ROOT, Platform, run, version


def make(platform: Platform, packing: Packing) -> bytes:
    """Returns the list with licences, digests and dependencies; what only builds or tests the program is not in it."""
    packages, edges, main = linked(platform)
    checksums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    components = {identifier: component(package, checksums) for identifier, package in packages.items()}
    dependencies = [
        {"ref": components[identifier]["bom-ref"], "dependsOn": sorted(components[to]["bom-ref"] for to in edges[identifier])}
        for identifier in packages
    ]
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
        "dependencies": sorted(dependencies, key=lambda each: each["ref"]),
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def inside(platform: Platform) -> bytes:
    """Returns the same list as `cargo auditable` writes it into a program, where scanners look for it."""
    packages, edges, main = linked(platform)
    order = sorted(packages, key=lambda identifier: (packages[identifier]["name"], packages[identifier]["version"]))
    places = {identifier: place for place, identifier in enumerate(order)}
    listed = []
    for identifier in order:
        package = packages[identifier]
        entry = {"name": package["name"], "version": package["version"], "source": "crates.io" if package["source"] else "local"}
        if edges[identifier]:
            entry["dependencies"] = sorted(places[to] for to in edges[identifier])
        if identifier == main:
            entry["root"] = True
        listed.append(entry)
    return json.dumps({"packages": listed}, separators=(",", ":")).encode()


@cache
def linked(platform: Platform) -> tuple[dict, dict, str]:
    """Returns the packages that are linked by their ids, the ids on which each depends, and the id of the program."""
    options = ["--locked", "--manifest-path", ROOT / "crates/cli/Cargo.toml", "--features", "full"]
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--filter-platform", platform.target, *options))
    # `cargo metadata` joins the features that tests ask for; `cargo tree` names exactly what is linked.
    tree = run("cargo", "tree", "--edges", "normal", "--prefix", "none", "--target", platform.target, *options)
    named = set(re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE))
    packages = {package["id"]: package for package in metadata["packages"] if (package["name"], package["version"]) in named}
    main = next(identifier for identifier, package in packages.items() if package["name"] == "mcp-elicit")
    edges = {
        node["id"]: {
            dependency["pkg"]
            for dependency in node["deps"]
            if dependency["pkg"] in packages and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        }
        for node in metadata["resolve"]["nodes"]
        if node["id"] in packages
    }
    return packages, edges, main


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
