#!/usr/bin/env bash
# The first hour of an engineer of a GPU platform: pods with fractions of GPUs, jobs of Slurm as JSON, the price of a GPU.
# Usage: tests/personas/platform-engineer.sh EVENHAND DATA
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ask "Do my pods go in?" 0 \
    workload import "$data/alibaba/gpu-v2023/openb_pod_list_default.csv.zst" -o pods.parquet --quiet --format json
answered '"format": "alibaba-gpu-2023"'
ask "What do they hold?" 0 workload describe pods.parquet
ask "Do jobs of Slurm as JSON go in?" 0 workload describe "$data/slurm/sarc/mila_1708819200.json"
cat >"$work/cluster.toml" <<'TOML'
[[machines]]
name = "gpu"
count = 4
cpu = 32
mem = "256Gi"
gpu = 4
[[machines]]
name = "thin"
count = 20
cpu = 32
mem = "128Gi"
TOML
ask "What should a GPU cost?" 0 price cpu=1:gpu=1 --cluster cluster.toml
answered "max-plus-optional"
