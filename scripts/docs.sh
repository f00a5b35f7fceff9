#!/usr/bin/env bash
# Builds the documentation as a site into target/book and checks it: every link, anchor, image, file and test that a page names.
#   scripts/docs.sh          everything; installs mdbook into .tools if it is missing
#   scripts/docs.sh links    only the checks of the sources, which need no mdbook; also of public items (sample_docs.py)
# A problem is reported as FILE:LINE: what is wrong; the exit status is then 1. No network is used after mdbook is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

MDBOOK=0.5.4
export PATH="$PWD/.tools/bin:$PATH"

python3 scripts/docs.py sources
python3 scripts/sample_docs.py check
[ "${1:-}" != links ] || exit 0

# By its path: a step of ./check fails if a program is called that is not there.
if ! [ -x .tools/bin/mdbook ] || [ "$(.tools/bin/mdbook --version)" != "mdbook v$MDBOOK" ]; then
    echo "installing mdbook $MDBOOK into .tools"
    # Only what building a searchable book needs; unoptimised, as compiling takes longer than building the book.
    CARGO_TARGET_DIR="$PWD/.tools/target/mdbook" CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug --root .tools --locked \
        --version "$MDBOOK" --no-default-features --features search mdbook
    rm -rf .tools/target/mdbook
fi

book=${CARGO_TARGET_DIR:-$PWD/target}/book
rm -rf "$book"
mdbook build docs --dest-dir "$book"
python3 scripts/docs.py site "$book"
