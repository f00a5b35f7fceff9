#!/usr/bin/env python3
"""Writes the software bill of materials of the program as CycloneDX 1.5 (JSON): every crate that is compiled into it or
runs while it is built, with version, licence, source, checksum and dependencies. Tests and benchmarks are left out.

    scripts/sbom.py [--target TARGET] [--python] [FILE]
FILE: default standard output. TARGET: as rustc names it (default: the host). --python: of the Python package's native module.

The result depends on Cargo.lock, the manifests and the target alone: the same commit gives the same bytes.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The program, and the native module of the Python package, which is a workspace of its own: folder and crate.
PROGRAM = (ROOT, "evenhand")
NATIVE_MODULE = (ROOT / "python", "evenhand-python")


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums, kind="library"):
    name, version = package["name"], package["version"]
    entry = {"type": kind, "bom-ref": purl(package), "name": name, "version": version, "purl": purl(package)}
    if package.get("license"):
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package.get("description"):
        entry["description"] = " ".join(package["description"].split())
    if package.get("repository"):
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    if checksum := checksums.get((name, version)):
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


def output(workspace, *command):
    return subprocess.run(command, cwd=workspace, check=True, stdout=subprocess.PIPE, text=True).stdout


def host():
    return next(line.split()[1] for line in output(ROOT, "rustc", "-vV").splitlines() if line.startswith("host:"))


def linked(workspace, crate, target):
    """The packages that the crate is built from, itself first, each with the identities of what it needs."""
    # Without the crates of other systems, which are in Cargo.lock but never compiled.
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(output(workspace, *command))
    packages = {p["id"]: p for p in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

    def needs(identity):
        for dependency in nodes[identity]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                yield dependency["pkg"]

    root = next(i for i, p in packages.items() if p["name"] == crate and p["source"] is None)
    found, waiting = set(), [root]
    while waiting:
        identity = waiting.pop()
        if identity not in found:
            found.add(identity)
            waiting.extend(needs(identity))
    order = sorted(found, key=lambda i: (i != root, packages[i]["name"], packages[i]["version"]))
    return {i: (packages[i], [packages[n] for n in needs(i)]) for i in order}


def bill(workspace, crate, kind, target):
    lock = tomllib.loads((workspace / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p["checksum"] for p in lock["package"] if "checksum" in p}
    (program, _), *others = entries = list(linked(workspace, crate, target).values())
    entries.sort(key=lambda entry: (entry[0]["name"], entry[0]["version"]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(program, checksums, kind)},
        "components": [component(package, checksums) for package, _ in others],
        "dependencies": [
            {"ref": purl(package), "dependsOn": sorted({purl(needed) for needed in needs})} for package, needs in entries
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default=None)
    parser.add_argument("--python", action="store_true")
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()
    of = (*NATIVE_MODULE, "library") if arguments.python else (*PROGRAM, "application")
    text = json.dumps(bill(*of, arguments.target or host()), indent=1, ensure_ascii=False) + "\n"
    if arguments.file:
        Path(arguments.file).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
