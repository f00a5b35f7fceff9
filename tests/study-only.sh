#!/usr/bin/env bash
# A program of studies alone (--no-default-features --features study) does what it can without the feature `formats`, and says what
# it lacks.
#   tests/study-only.sh EVENHAND
set -uo pipefail

evenhand=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"
cp "$root/docs/examples/lab.swf" "$root/docs/examples/pool.toml" "$work/"
cd "$work" || exit 1

studies() { "$evenhand" study "$@" --policy fifo,drf --capacity pool.toml --out out 2>notes; }
tasks_are_csv() {
    studies lab.swf && [ -s out/index.html ] && [ -s out/tasks-fifo-pool.csv ] && grep -q 'built without Parquet' notes
}
# refuses FILE: as invalid input, with the feature that would read it.
refuses() {
    local status=0
    studies "$1" || status=$?
    cat notes
    [ "$status" = 2 ] && grep -q 'feature `formats`' notes
}
writes_no_store() {
    local status=0
    "$evenhand" workload import lab.swf -o stored.parquet 2>notes || status=$?
    cat notes
    [ "$status" = 2 ] && grep -q 'feature `formats`' notes && [ ! -e stored.parquet ]
}

gzip -k lab.swf
printf '\x28\xb5\x2f\xfd\x00\x00' >lab.swf.zst
printf 'BZh91AY' >lab.swf.bz2
printf '\xfd7zXZ\x00\x00' >lab.swf.xz
printf 'PAR1xxxxPAR1' >stored
tar -cf lab.tar lab.swf
holds "tasks are written as CSV, and a note says why" tasks_are_csv
holds "a trace packed by gzip is read" studies lab.swf.gz
holds "zstd is refused" refuses lab.swf.zst
holds "bzip2 is refused" refuses lab.swf.bz2
holds "xz is refused" refuses lab.swf.xz
holds "a tar archive is refused" refuses lab.tar
holds "a stored workload is refused" refuses stored
holds "no workload is stored" writes_no_store
summary
