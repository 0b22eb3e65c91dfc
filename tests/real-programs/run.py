#!/usr/bin/env python3
"""Published servers and clients, with the gateway between them and without it.

Installs the pinned packages, runs each client before each server directly and through the gateway, and prints what worked
where. A call that works directly and fails through the gateway makes it fail. `--help` lists the options.
"""

import argparse
import concurrent.futures
import os
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import agents
import silent
import table
from cells import OK, Rig
from packages import HERE, Absent, Packages
from programs import CLIENTS, QUICK, SERVERS

ROOT = HERE.parent.parent


@dataclass
class Results:
    """What a run found out."""

    rows: list
    gave_up: list
    played: list
    versions: dict
    absent: list

    def with_newer(self, newer):
        """Returns these results with those rows replaced that the newer ones have too."""
        def merged(old, new, key):
            return list(({key(row): row for row in old} | {key(row): row for row in new}).values())

        return Results(
            sorted(merged(self.rows, newer.rows, lambda row: (row.server, row.client)), key=order),
            merged(self.gave_up, newer.gave_up, lambda row: row.server),
            merged(self.played, newer.played, lambda row: (row.name, row.server)),
            self.versions | newer.versions,
            list(dict.fromkeys(self.absent + newer.absent)),
        )


def read(given):
    """Returns the results of the last run, if there are any."""
    stored = given.cache / "results.pickle"
    return pickle.loads(stored.read_bytes()) if stored.exists() else None


def store(given, results, older):
    """Keeps the results, with the older ones of what was not run, for the next run; returns them."""
    for row in [*results.rows, *results.gave_up, *results.played]:
        row.commit = table.commit(ROOT)
    results = older.with_newer(results) if older else results
    (given.cache / "results.pickle").write_bytes(pickle.dumps(results))
    return results


def order(row):
    """Rows are in the order of the programs."""
    servers, clients = [server.name for server in SERVERS], [client.name for client in CLIENTS]
    return servers.index(row.server), clients.index(row.client)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=target_folder() / "debug" / "mcp-elicit", help="the built mcp-elicit")
    parser.add_argument("--cache", type=Path, default=target_folder() / "real-programs", help="where the packages are installed")
    parser.add_argument("--have", action="append", default=[], metavar="SET=FOLDER", help="a set of packages that is installed elsewhere")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="sessions at a time")
    parser.add_argument("--quick", action="store_true", help="only what runs in CI")
    parser.add_argument("--server", action="append", default=[], help="only servers whose name contains this")
    parser.add_argument("--client", action="append", default=[], help="only clients whose name contains this")
    parser.add_argument("--agents", choices=["all", "only", "none"], default="all", help="whether agents' programs run")
    parser.add_argument("--keep", action="store_true", help="take the rows that are not run from the last run's results")
    parser.add_argument("--keep-direct", action="store_true", help="do not repeat what was run without the gateway last time")
    parser.add_argument("--verbose", action="store_true", help="say what every failed call came to")
    parser.add_argument("--write", action="store_true", help="write the table into docs/real-programs.md")
    return parser.parse_args()


def target_folder():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def pairs(given):
    """Returns the servers and clients to try, as the options say."""
    def named(program, wanted):
        return not wanted or any(word in program.name for word in wanted)

    both = [(server, client) for server in SERVERS for client in CLIENTS if named(server, given.server) and named(client, given.client)]
    if given.quick:
        return [(server, client) for server, client in both if (server.name, client.name) in QUICK]
    return [(server, client) for server, client in both if server.wide or client.core or (given.server and given.client)]


def installed(rig, programs, absent):
    """Installs what these programs need; returns their versions. Programs whose needs are not on this machine are left out."""
    found = {}
    for program in programs:
        if program.name in found:
            continue
        try:
            version = rig.packages.version(program.packages, program.package) if program.packages else table.own_version(ROOT)
            if program.packages and not (rig.packages.folder(program.packages) / "bin/python").exists():
                rig.packages.node(program.packages)
            found[program.name] = version
        except Absent as why:
            absent.append(f"{program.name}: {why}")
    return found


def pair(rig, server, client, quick, direct=None):
    """Runs one client before one server in every way that it can be asked; without the gateway unless that is known."""
    calls = [call for call in server.calls if not quick or call.tool in server.quick]
    unasked = [call for call in calls if not call.answers]
    row = table.Row(server.name, client.name)
    row.direct = direct or rig.play(server, client, calls if client.can_ask else unasked, through=False, asked_in_client=client.can_ask)
    if client.can_ask:
        row.in_client = rig.play(server, client, calls, through=True, asked_in_client=True)
    row.in_inbox = rig.play(server, client, calls, through=True, asked_in_client=False)
    return row


def main():
    given = options()
    if not given.program.is_file():
        sys.exit(f"{given.program} is not built: cargo build -p mcp-elicit --features full")
    started = time.monotonic()
    rig = Rig(given.program.resolve(), Packages(given.cache, given.have))
    absent, rows, gave_up, versions = [], [], [], {}
    older = read(given) if given.keep else None
    if given.agents != "only":
        both = pairs(given)
        versions = installed(rig, [program for pair in both for program in pair], absent)
        both = [(server, client) for server, client in both if server.name in versions and client.name in versions]
        print(f"installed in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        stored = read(given) if given.keep_direct else None
        known = {(row.server, row.client): row.direct for row in stored.rows if row.direct.tools} if stored else {}
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            impatient = pool.submit(silent.play_all, rig, both)
            work = [pool.submit(pair, rig, server, client, given.quick, known.get((server.name, client.name))) for server, client in both]
            for done in concurrent.futures.as_completed(work):
                said = [table.line(done.result()), *(table.failures(done.result()) if given.verbose else [])]
                print("\n".join(said), file=sys.stderr, flush=True)
            rows, gave_up = [done.result() for done in work], impatient.result()
        # An agent that cannot be installed does not lose what the pairs have shown.
        store(given, Results(rows, gave_up, [], versions, absent), older)
    played = agents.play_all(rig, absent, given.quick, given.client if given.agents == "only" else ()) if given.agents != "none" else []
    results = store(given, Results(rows, gave_up, played, versions, absent), older)
    rows, gave_up, played, versions, absent = results.rows, results.gave_up, results.played, results.versions, results.absent
    table.judge(rows)
    text = table.markdown(rows, gave_up, played, versions, absent)
    print(text)
    print(f"{time.monotonic() - started:.0f} s in all", file=sys.stderr)
    if given.write:
        table.write(ROOT / "docs" / "real-programs.md", text, {row.commit for row in [*rows, *gave_up, *played]})
    broken = [row for row in rows if row.broken] + [one for one in [*gave_up, *played] if one.result != OK]
    if broken:
        sys.exit(f"{len(broken)} rows work without the gateway and fail with it, or leave the inbox without a question")


if __name__ == "__main__":
    main()
