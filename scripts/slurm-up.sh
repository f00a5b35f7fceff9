#!/usr/bin/env bash
# Starts a private Slurm cluster on this machine, without systemd, as the calling user: root or an ordinary user.
#   scripts/slurm-up.sh DIR     prints a line to evaluate: export SLURM_CONF=…
# All of it lives below DIR (keys, state, logs, sockets), on ports that are free. scripts/slurm-down.sh DIR stops it.
# Environment:
#   SLURM_NODES   a line a node: name cpus memory_mb gpus feature; they may be larger than the machine. GPUs are a number,
#                 or a type and a number: h100:2
#   SLURM_CONF_EXTRA   more lines of slurm.conf; the last of two lines with one key counts
#   SLURM_PARTITION_DEFAULTS   of all partitions, such as OverSubscribe=EXCLUSIVE
#   WITH_DB=1     with accounting: a database server and slurmdbd, and accounts for SLURM_USERS (default: the caller)
# As an ordinary user, jobs run as that user only.
set -euo pipefail

DIR=${1:?usage: scripts/slurm-up.sh DIR}
mkdir -p "$DIR"
DIR=$(cd "$DIR" && pwd)
WITH_DB=${WITH_DB:-0}
ME=$(id -un)
HOST=$(hostname -s)
SLURM_NODES=${SLURM_NODES:-'n1 4 8000 0 spec_100
n2 4 8000 0 spec_150'}
SLURM_USERS=${SLURM_USERS:-$ME}
export PATH="$PATH:/usr/sbin:/sbin"

mkdir -p "$DIR"/{etc,run,log,spool,state}
chmod 755 "$DIR" "$DIR"/{etc,run,log,spool,state}
export SLURM_CONF="$DIR/etc/slurm.conf"

fail() {
    printf 'slurm-up: %s\n' "$*" >&2
    tail -n 3 "$DIR"/log/*.log >&2 2>/dev/null || true
    exit 1
}

# wait_for SECONDS COMMAND…
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.05
    done
}

# A row of COUNT ports that nobody listens on, below those the system gives out by itself.
free_ports() {
    local count=$1 first port
    for _ in $(seq 50); do
        first=$((20000 + RANDOM % 11000))
        for ((port = first; port < first + count; port++)); do
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue 2; fi
        done
        printf '%s\n' "$first"
        return 0
    done
    return 1
}

nodes=$(awk '!/^#/ && NF { print $1 }' <<<"$SLURM_NODES")
PORT=$(free_ports $((3 + $(wc -l <<<"$nodes")))) || fail "no free ports"

# A key and a socket of its own. By force: a folder that others may not enter is fine where jobs run as the caller.
head -c 128 /dev/urandom >"$DIR/etc/munge.key"
chmod 400 "$DIR/etc/munge.key"
munged --force --key-file="$DIR/etc/munge.key" --socket="$DIR/run/munge.socket" --pid-file="$DIR/run/munged.pid" \
    --log-file="$DIR/log/munged.log" --seed-file="$DIR/run/munged.seed" --num-threads=2 2>/dev/null || fail "munged does not start"

accounting() {
    [ "$WITH_DB" = 1 ] || return 0
    cat <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORT + 1))
AccountingStoragePass=$DIR/run/munge.socket
AccountingStorageEnforce=associations
AccountingStorageTRES=gres/gpu
CONF
}

node_lines() {
    local at=3 name cpus memory gpus feature
    while read -r name cpus memory gpus feature; do
        case $name in '' | \#*) continue ;; esac
        printf 'NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=%s RealMemory=%s %s Feature=%s State=UNKNOWN\n' \
            "$name" "$HOST" "$((PORT + at))" "$cpus" "$memory" "$([ "${gpus:-0}" = 0 ] || echo "Gres=gpu:$gpus")" "${feature:-none}"
        at=$((at + 1))
    done <<<"$SLURM_NODES"
}

# config_overrides: nodes may claim more than the machine has. linuxproc, task/none: no cgroups needed.
cat >"$SLURM_CONF" <<CONF
ClusterName=evenhand
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$PORT
SlurmUser=$ME
SlurmdUser=$ME
AuthType=auth/munge
AuthInfo=socket=$DIR/run/munge.socket
CredType=cred/munge
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd-%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd-%n.log
MpiDefault=none
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
PropagateResourceLimits=NONE
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=2000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
PriorityType=priority/multifactor
GresTypes=gpu
$(accounting)
$(node_lines)
PartitionName=DEFAULT State=UP ${SLURM_PARTITION_DEFAULTS:-}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10:00 State=UP
PartitionName=express Nodes=ALL MaxTime=1:00:00 DefaultTime=10:00 State=UP
${SLURM_CONF_EXTRA:-}
CONF

# A GPU is a character device; harmless ones stand in.
devices=(/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx)
awk '!/^#/ && NF { print $1, $4 }' <<<"$SLURM_NODES" | while read -r name gpus; do
    gpus=${gpus:-0}
    case $gpus in *:*) type="Type=${gpus%:*} " ;; *) type= ;; esac
    for ((k = 0; k < ${gpus##*:}; k++)); do printf 'NodeName=%s Name=gpu %sFile=%s\n' "$name" "$type" "${devices[$k]}"; done
done >"$DIR/etc/gres.conf"

new_database() {
    rm -rf "$DIR/db"
    mkdir -p "$DIR/db"
    mariadb-install-db --no-defaults --user="$ME" --datadir="$DIR/db" --auth-root-authentication-method=normal \
        --skip-test-db >"$DIR/log/install-db.log" 2>&1
}

# Begins again after a crash, as under systemd (Restart=on-abnormal): a server has died of a segmentation fault while the cluster
# was added. slurmdbd connects again by itself. 128 + 9 and + 15 are what scripts/slurm-down.sh sends.
database_server() {
    local status
    while :; do
        status=0
        mariadbd --no-defaults --user="$ME" --datadir="$DIR/db" --socket="$1" --port=$((PORT + 2)) \
            --bind-address=127.0.0.1 --pid-file="$DIR/run/mariadb.pid" --log-error="$DIR/log/mariadb.log" \
            --innodb-buffer-pool-size=128M --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=2 || status=$?
        case $status in 137 | 143) return ;; esac
        [ "$status" -gt 128 ] || return
    done
}

# What sacctmgr adds, where it is not there yet: after a crash of the database server it may be.
listed() { [ -n "$(sacctmgr -n show "$@" 2>/dev/null)" ]; }
add_cluster() { listed cluster evenhand || sacctmgr -i -Q add cluster evenhand; }
add_account() { listed account all || sacctmgr -i -Q add account all Cluster=evenhand; }
add_user() { listed associations user="$1" account=all || sacctmgr -i -Q add user "$1" DefaultAccount=all; }

database() {
    local socket="$DIR/run/mysql.sock"
    # 11.8 sometimes fails where several begin at once.
    new_database || new_database || fail "no database"
    database_server "$socket" >/dev/null 2>&1 &
    wait_for 30 mariadb-admin --no-defaults -S "$socket" -u root ping || fail "the database server does not answer"
    mariadb --no-defaults -S "$socket" -u root -e "
        CREATE DATABASE slurm_acct_db;
        CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm'; CREATE USER 'slurm'@'localhost' IDENTIFIED BY 'slurm';
        GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1', 'slurm'@'localhost';"
    cat >"$DIR/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$DIR/run/munge.socket
DbdAddr=127.0.0.1
DbdHost=localhost
DbdPort=$((PORT + 1))
SlurmUser=$ME
LogFile=$DIR/log/slurmdbd.log
PidFile=$DIR/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((PORT + 2))
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
CONF
    chmod 600 "$DIR/etc/slurmdbd.conf"
    slurmdbd || fail "slurmdbd does not start"
    wait_for 20 sacctmgr -n show cluster || fail "slurmdbd does not answer"
    wait_for 30 add_cluster || fail "the cluster cannot be added"
    wait_for 30 add_account || fail "the account cannot be added"
    local user
    for user in $SLURM_USERS; do wait_for 5 add_user "$user" || true; done
}

[ "$WITH_DB" != 1 ] || database

slurmctld -i >/dev/null 2>&1 || fail "slurmctld does not start"
controller_is_up() { scontrol ping 2>/dev/null | grep -q 'is UP'; }
wait_for 20 controller_is_up || fail "the controller does not answer"
for node in $nodes; do
    mkdir -p "$DIR/spool/$node"
    slurmd -N "$node" >/dev/null 2>&1 || fail "slurmd $node does not start"
done
all_idle() { [ "$(sinfo -h -N -p main -t idle -o %N | wc -l)" = "$(wc -l <<<"$nodes")" ]; }
wait_for 20 all_idle || fail "not all nodes come up"
printf 'export SLURM_CONF=%q\n' "$SLURM_CONF"
