#!/usr/bin/env bash
# The first hour of a researcher: a log of the Parallel Workloads Archive, a comparison of policies, an export.
# Usage: tests/personas/researcher.sh EVENHAND DATA
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

log="$data/swf/KTH-SP2-1996-2.1-cln.swf.zst"
ask "Does a public log go in?" 0 workload import "$log" -o kth.parquet
answered "Read"
ask "What does it look like?" 0 workload describe kth.parquet
ask "How do policies compare?" 0 \
    study kth.parquet --policy fifo,drf,sdrf --half-life 8d --capacity 1.0 --no-tasks --out study --explain
answered "users' mean"
ask "Can another program read it?" 0 workload export kth.parquet --to evalys-csv -o jobs.csv
ask "Which formats are there?" 0 workload formats
answered "pbs"
