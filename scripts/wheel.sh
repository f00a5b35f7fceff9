#!/usr/bin/env bash
# Builds the wheel of the Python package, which carries the program, with tools in a fresh virtual environment
# (python/target/venv).
#   scripts/wheel.sh PROGRAM DIR [PROFILE]
# PROFILE: of python/Cargo.toml; release if it is left out.
# Exit status 77: what it needs cannot be installed.
set -euo pipefail
program=$(realpath "${1:?the program}")
out=$(realpath -m "${2:?the folder for the wheel}")
profile=${3:-release}
cd "$(dirname "${BASH_SOURCE[0]}")/../python"
# Where what installs things finds the programs that it calls, also in a step of ./check.
path=${PROGRAMS_SEARCH:-$PATH}
# Its own: other features of the same crates, and a profile that compiles faster.
export CARGO_TARGET_DIR=$PWD/target
venv=$PWD/target/venv

rm -rf "$venv" target/wheel-data
mkdir -p target/wheel-data/scripts "$out"
# By its own path: a step's folder of links to programs is gone afterwards, and the environment stays.
if ! { PATH=$path "$(PATH=$path python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" -m venv "$venv" &&
    PATH=$path "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt; }; then
    echo "skipped: a virtual environment with requirements.txt cannot be made"
    exit 77
fi
strip -o target/wheel-data/scripts/evenhand "$program"
"$venv/bin/python" ../scripts/sbom.py --python target/evenhand-python.cdx.json
"$venv/bin/maturin" build --quiet --sbom-include target/evenhand-python.cdx.json --profile "$profile" --locked --interpreter "$venv/bin/python" --out "$out"
