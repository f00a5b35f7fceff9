#!/usr/bin/env bash
# The first hour of an administrator of a cluster with PBS: the accounting of three months, questions about fairness.
# Usage: tests/personas/administrator.sh EVENHAND DATA
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ask "Does my accounting go in?" 0 \
    workload import "$data/pbs/IU-Mason-2017-Oct-Dec-pbs-accounting.tbz" -o site.parquet --quiet --format json
answered '"tasks": 16221'
ask "What is in it?" 0 workload describe site.parquet
answered "81"
ask "Would fair tree with a memory of 7 days be better than what I have, and who would lose?" 0 \
    study site.parquet --policy fifo,fair-tree --half-life 7d --capacity 1.0 --no-tasks --out study
answered "fair-tree"
answered "lose most"
ask "Who had a justified complaint?" 1 audit --history site.parquet --property envy_free
answered "envy_free"
ask "Which policies are there?" 0 study --policy help
answered "fair-tree"
