#!/usr/bin/env python3
"""Writes the licences of every crate that the program is built from: which crates have which licence, and each text once.

    scripts/packages/licences.py --target TARGET FILE

The crates are those of the bill of materials (scripts/sbom.py).
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import sbom  # noqa: E402

NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")

HEADING = """The program evenhand is built from these crates, each with its licence; the texts follow. It also contains Rust's standard
library (MIT OR Apache-2.0, https://www.rust-lang.org) and, where it is static, the C library musl (MIT, https://musl.libc.org).

"""


def files(package):
    folder = Path(package["manifest_path"]).parent
    # Sources in C lie one folder below, with their own licence.
    found = [p for p in (*folder.glob("*"), *folder.glob("*/*")) if p.is_file() and p.name.lower().startswith(NAMES)]
    found = [p for p in found if p.suffix.lower() in ("", ".md", ".txt") or p.name.lower().startswith("license")]
    return sorted(found, key=lambda p: str(p.relative_to(folder)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True)
    parser.add_argument("file")
    arguments = parser.parse_args()

    # Ours have the licence of the whole.
    crates = [p for p, _ in sbom.linked(*sbom.PROGRAM, arguments.target).values() if p["source"] is not None]
    texts, lines, without = {}, [], []
    for package in crates:
        name = f"{package['name']} {package['version']}"
        if not package.get("license"):
            sys.exit(f"error: {name} states no licence")
        numbers = []
        for file in files(package):
            text = "\n".join(line.rstrip() for line in file.read_text(errors="replace").splitlines()).strip()
            numbers.append(texts.setdefault(text, len(texts) + 1))
        if not numbers:
            without.append(name)
        place = f"texts {', '.join(map(str, sorted(set(numbers))))}" if numbers else "no text in its package"
        lines.append(f"{name}: {package['license']} ({place})")

    parts = [HEADING + "\n".join(lines)]
    for text, number in texts.items():
        parts.append(f"{'=' * 100}\nText {number}\n{'=' * 100}\n\n{text}")
    Path(arguments.file).write_text("\n\n".join(parts) + "\n")
    print(f"{len(crates)} crates, {len(texts)} texts of licences; {len(without)} crates come without a text")


if __name__ == "__main__":
    main()
