#!/usr/bin/env python3
"""Samples the documentation of public items, for review, and checks what a lint does not.

    scripts/sample_docs.py [N] [SEED]    prints N items (default 10) chosen by SEED (default: another each time)
    scripts/sample_docs.py check         only the check

The check: a public function that returns a Result has a section "# Errors", and no documentation starts with a phrase of
the kind "That …", "What …" or "Whether …" where a sentence with a verb belongs (functions only). Problems are printed as
FILE:LINE: what is missing; the exit status is then 1. `missing_docs` of rustc holds that there is documentation at all.
"""
import random
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ITEM = re.compile(r"\s*pub (?:const |async |unsafe )*(fn|struct|enum|trait|type|const|static) (\w+)")


def items():
    """Yields path, line, kind, signature and documentation of every public item outside tests."""
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        lines = path.read_text().split("\n")
        for at, line in enumerate(lines):
            if line.startswith("#[cfg(test)]"):
                break
            found = ITEM.match(line)
            if not found:
                continue
            first = at
            while first > 0 and re.match(r"\s*(///|#\[|\)\])", lines[first - 1]):
                first -= 1
            docs = [doc.strip()[3:].strip() for doc in lines[first:at] if doc.strip().startswith("///")]
            end = at
            while end + 1 < len(lines) and not re.search(r"[{;]\s*$", lines[end]):
                end += 1
            signature = " ".join(part.strip() for part in lines[at : end + 1]).rstrip("{ ")
            yield path.relative_to(ROOT), at + 1, found.group(1), signature, docs


def problems(found):
    for path, line, kind, signature, docs in found:
        if kind != "fn" or not docs:
            continue
        name = signature.split("(")[0]
        if re.search(r"-> (?:\w+::)*Result<", signature) and "# Errors" not in docs and "See [" not in " ".join(docs):
            yield f"{path}:{line}: {name} returns a Result and has no section \"# Errors\""
        if re.match(r"(That|What|Whether|Who|How|Where|When|Of|With) ", docs[0]):
            yield f"{path}:{line}: the documentation of {name} starts with no verb: {docs[0]}"


def main():
    found = list(items())
    if sys.argv[1:] != ["check"]:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
        chooser = random.Random(sys.argv[2] if len(sys.argv) > 2 else None)
        for path, line, _, signature, docs in chooser.sample(found, min(count, len(found))):
            print(f"{path}:{line}\n    {signature}")
            print("\n".join(f"    | {doc}" for doc in docs) + "\n")
    wrong = list(problems(found))
    print("\n".join(wrong + [f"{len(found)} public items, {len(wrong)} problems"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
