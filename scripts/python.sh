#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a fresh virtual environment (python/target/venv) and tests it
# there: tests, doctests, types, and the stubs against the module.
#   scripts/python.sh PROGRAM [TEST…]
# PROGRAM is the program `evenhand`, which the wheel carries. TEST: only these files, in place of everything.
# Exit status 77: what it needs cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../python"
program=$(realpath "$OLDPWD/${1:?the program}" 2>/dev/null || realpath "$1")
shift
# Where what installs things finds the programs that it calls, also in a step of ./check.
path=${PROGRAMS_SEARCH:-$PATH}
export CARGO_TARGET_DIR=$PWD/target
python=$PWD/target/venv/bin/python

rm -rf target/wheels
# Compiled by clippy's driver, so that one pass lints the module and builds it.
RUSTC_WORKSPACE_WRAPPER=clippy-driver RUSTFLAGS="-D warnings" ../scripts/wheel.sh "$program" target/wheels quick
PATH=$path "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index target/wheels/*.whl

if [ $# != 0 ]; then
    exec "$python" -m pytest "$@"
fi
package=$("$python" -c 'import evenhand, os; print(os.path.dirname(evenhand.__file__))')
"$python" -m pytest tests
"$python" -m pytest --doctest-modules "$package"
"$python" -m doctest -o ELLIPSIS ../docs/src/how-to/use-from-python.md
"$python" -m mypy --strict package
(cd target && MYPYPATH='' "$python" -m mypy.stubtest evenhand --concise --mypy-config-file ../pyproject.toml)
