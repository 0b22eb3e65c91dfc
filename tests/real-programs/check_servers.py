#!/usr/bin/env python3
"""`mcp-elicit check` before published servers, and before small servers of each SDK.

Installs the pinned packages, runs every cell of the check for one tool that asks, and prints what was found. `--help` lists the
options.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import table
from cells import Rig, environment
from packages import Absent, Packages
from programs import SERVERS
from run import ROOT, target_folder

#: The tools that are checked, where it is not `book` of the small servers.
TOOLS = {
    "server-everything": ["trigger-elicitation-request"],
    "mongodb-mcp-server": ["drop-database", '{"connectionId": "preconfigured", "database": "shop"}'],
    "okta-mcp-server": ["delete_group", '{"group_id": "g1"}'],
    "mcp-elicitation-proxy": ["greet"],
    "@azure-devops/mcp": ["hundred"],
    "rmcp (mcp-elicit demo-server)": ["deploy"],
}
#: The longest time for one server.
LONGEST = 1800
PAGE = ROOT / "docs" / "check.md"
BEGIN, END = "<!-- written by `just check-servers` from here -->", "<!-- to here -->"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=target_folder() / "debug" / "mcp-elicit", help="the built mcp-elicit")
    parser.add_argument("--cache", type=Path, default=target_folder() / "real-programs", help="where the packages are installed")
    parser.add_argument("--server", action="append", default=[], help="only servers whose name contains this")
    parser.add_argument("--time", default="5s", help="the longest wait for a server's next step")
    parser.add_argument("--verbose", action="store_true", help="print each finding")
    parser.add_argument("--write", action="store_true", help="write the table into docs/check.md")
    return parser.parse_args()


class Failed(Exception):
    """A check that came to no verdict."""


def check(given, rig, server):
    """Returns the cells of this server, and the summary."""
    with tempfile.TemporaryDirectory(prefix="check-servers-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "home").mkdir()
        target = rig.server(server, folder)
        tool = TOOLS.get(server.name, ["book"])
        command = [str(given.program), "check", "--json", "--time", given.time, "--tool", *tool, "--", *target]
        env = environment(folder / "home")
        # Each cell starts the server anew; compiled modules are kept.
        env.pop("PYTHONDONTWRITEBYTECODE")
        ran = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    if not lines or lines[-1].get("event") != "summary":
        raise Failed(f"no summary (exit {ran.returncode}): {ran.stderr.strip()[-300:]}")
    return lines[:-1], lines[-1]


def rows(name, version, cells):
    """Returns a row of the table for each revision."""
    for revision in dict.fromkeys(cell["revision"] for cell in cells):
        mine = [cell for cell in cells if cell["revision"] == revision]
        count = {verdict: sum(cell["verdict"] == verdict for cell in mine) for verdict in ("pass", "warn", "fail")}
        tool = next(cell["tool"] for cell in mine)
        yield f"| {name} {version} | {tool} | {revision} | {count['pass']} | {listed(mine, 'warn')} | {listed(mine, 'fail')} |"


def listed(cells, verdict):
    """Returns the codes of the cells with this verdict, each with its cells."""
    codes = {}
    for cell in (cell for cell in cells if cell["verdict"] == verdict):
        for finding in cell.get("findings", []):
            codes.setdefault(finding["code"], []).append(cell["cell"])
    return "; ".join(f"`{code}` ({', '.join(dict.fromkeys(names))})" for code, names in codes.items())


def main():
    given = options()
    if not given.program.exists():
        sys.exit(f"{given.program} is not built: cargo build --locked -p mcp-elicit --features full")
    given.program = given.program.resolve()
    packages = Packages(given.cache)
    rig = Rig(given.program, packages)
    found, absent, failed = [], [], []
    for server in (server for server in SERVERS if not given.server or any(word in server.name for word in given.server)):
        try:
            version = packages.version(server.packages, server.package) if server.packages else table.own_version(ROOT)
            if server.packages and not (packages.folder(server.packages) / "bin/python").exists():
                packages.node(server.packages)
        except Absent as why:
            absent.append(f"{server.name}: {why}")
            continue
        try:
            cells, summary = check(given, rig, server)
        except (Failed, subprocess.TimeoutExpired) as why:
            failed.append(f"{server.name}: {why}")
            print(failed[-1], flush=True)
            continue
        print(f"{server.name} {version}: {summary['counts']}", flush=True)
        for cell in cells:
            for finding in cell.get("findings", []):
                if given.verbose:
                    print(f"    {cell['revision']} {cell['cell']}: {finding}")
        found += rows(server.name, version, cells)
    head = ["| server | tool | revision | passed | warnings | failures |", "| --- | --- | --- | --- | --- | --- |"]
    text = "\n".join([*head, *found, *(f"\nNot run here: {'; '.join(absent)}." for _ in absent[:1])])
    if failed:
        sys.exit(f"{text}\n{len(failed)} servers could not be checked, so that nothing is written")
    if given.write:
        table.write(PAGE, f"{text}\n", {table.commit(ROOT)}, (BEGIN, END))
    else:
        print(text)


if __name__ == "__main__":
    main()
