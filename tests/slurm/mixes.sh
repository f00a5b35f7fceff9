# The mixes of jobs of tests/slurm/fidelity.sh: nodes, settings, and submissions. Sourced; $mix, $seed and $jobs are set.
# shellcheck shell=bash

# Two kinds of nodes, two partitions of which one has only the larger kind, and clocks that fit jobs of seconds.
smaller=4 larger=2 mix_users=6 fairshare=0
case $mix in
    small) jobs=${jobs:-150} fairshare=10000 ;;
    site) smaller=48 larger=16 mix_users=20 jobs=${jobs:-700} fairshare=10000 ;;
    licences | features | suspension | suspension-qos | tasks | node-tasks) jobs=${jobs:-150} ;;
    preemption) jobs=${jobs:-110} mix_users=3 ;;
    *) echo "unknown mix $mix" >&2 && exit 2 ;;
esac
nodes=$(
    for ((i = 1; i <= smaller; i++)); do echo "a$i 4 8000 0 small$([ "$mix" != features ] || [ "$i" -lt 3 ] || echo ,ssd)"; done
    for ((i = 1; i <= larger; i++)); do echo "b$i 8 16000 0 large$([ "$mix" != features ] || [ "$i" -lt 2 ] || echo ,gpu)"; done
)
settings="PriorityWeightAge=1000
PriorityMaxAge=1-0
PriorityWeightFairshare=$fairshare
PriorityWeightJobSize=500
PriorityCalcPeriod=1
PriorityDecayHalfLife=1-0
SelectTypeParameters=CR_CPU
SlurmctldDebug=debug
SchedulerParameters=sched_interval=15,bf_interval=7,batch_sched_delay=3,bf_resolution=1
PartitionName=large Nodes=b[1-$larger] MaxTime=1:00:00 PriorityJobFactor=10 State=UP"
case $mix in
    licences) settings+="
Licenses=sim:4,solver:2
AccountingStorageTRES=gres/gpu,license/sim,license/solver" ;;
    suspension) settings+="
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PartitionName=urgent Nodes=ALL MaxTime=1:00:00 PriorityTier=10 State=UP" ;;
    suspension-qos) settings+="
PreemptType=preempt/qos
PreemptMode=SUSPEND,GANG" ;;
    preemption) settings+="
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=scrap Nodes=ALL MaxTime=1:00:00 PreemptMode=CANCEL State=UP
PartitionName=urgent Nodes=ALL MaxTime=1:00:00 PriorityTier=10 PreemptMode=OFF State=UP" ;;
esac

# A line a submission: seconds until the next one, user, partition, nodes (0: as many as Slurm takes for the tasks; below 0: so many, among which
# Slurm divides the tasks), processors, seconds, minutes of the limit, tasks of an
# array, and further options. Most jobs run far shorter than their limits, a few beyond them.
mix() {
    case $mix in
        site) mix_site ;;
        *) mix_small ;;
    esac
}

# Serial and multi-node jobs of six users within a minute or two.
mix_small() {
    awk -v seed="$seed" -v jobs="$jobs" -v mix="$mix" 'BEGIN {
        srand(seed)
        for (i = 0; i < jobs; i++) {
            user = int(6 * rand() * rand())
            large = rand()
            nodes = large < 0.12 ? 2 + int(4 * rand()) : 1
            cpus = nodes > 1 ? nodes * (1 + int(4 * rand())) : 1 + int(4 * rand() * rand())
            run = rand() < 0.2 ? 15 + int(25 * rand()) : 2 + int(10 * rand())
            limit = rand() < 0.5 ? 1 : 1 + int(5 * rand())
            partition = rand() < 0.15 && nodes <= 2 ? "large" : "main"
            gap = rand() < 0.75 ? 0 : 1
            options = ""
            if (mix != "small") rule()
            print gap, user, partition, nodes, cpus, run, limit, 1, options
        }
    }
    function rule(    kind) {
        kind = rand()
        if (mix == "licences" && kind < 0.6) options = kind < 0.3 ? "-L sim" : kind < 0.4 ? "-L sim:2" : kind < 0.5 ? "-L solver" : "-L sim,solver"
        if (mix == "features" && partition == "main" && nodes <= 2) {
            if (kind < 0.2) options = "-C ssd"
            else if (kind < 0.3) options = "-C small&ssd"
            else if (kind < 0.4) options = "-C ssd|gpu"
            else if (kind < 0.5) options = "-C (small&ssd)|gpu"
            else if (kind < 0.6 && nodes == 1) options = "-C gpu"
        }
        if (mix ~ /suspension/) {
            # So that low jobs run when urgent ones come.
            run = 8 + int(30 * rand())
            gap = rand() < 0.5 ? 0 : 2
            if (kind < 0.2) {
                run = 3 + int(10 * rand())
                if (mix == "suspension") partition = "urgent"; else options = "--qos=urgent"
            }
        }
        if (mix == "tasks" && kind < 0.5) {
            nodes = 0
            cpus = 3 + int(10 * rand())
            partition = "main"
        }
        if (mix == "node-tasks" && kind < 0.5) {
            nodes = 2 + int(3 * rand())
            cpus = nodes + 1 + int(3 * nodes * rand())
            nodes = -nodes
            partition = "main"
        }
        if (mix == "preemption") {
            run = 8 + int(50 * rand())
            limit = int(run / 60) + 1 + int(3 * rand())
            gap = rand() < 0.5 ? 0 : 3
            partition = kind < 0.15 ? "urgent" : kind < 0.4 ? "scrap" : "main"
        }
    }'
}

# Sessions of twenty users over some ten minutes: serial and multi-node jobs, arrays, whole nodes.
mix_site() {
    awk -v seed="$seed" -v jobs="$jobs" 'BEGIN {
        srand(seed)
        for (done = 0; done < jobs; done += tasks) {
            if (left-- <= 0) { user = int(20 * rand() * rand()); left = 1 + int(4 * rand()); kind = rand() }
            tasks = 1; nodes = 1; whole = ""
            if (kind < 0.15) { tasks = 4 + int(12 * rand()); cpus = 1 + int(2 * rand()) }
            else if (kind < 0.45) { nodes = 2 + int(8 * rand() * rand()); cpus = nodes * (1 + int(4 * rand())) }
            else if (kind < 0.52) { nodes = 1 + int(4 * rand()); cpus = nodes; whole = "--exclusive" }
            else cpus = 1 + int(6 * rand() * rand())
            run = rand() < 0.3 ? 90 + int(240 * rand()) : 12 + int(80 * rand())
            limit = int(run * (1 + 3 * rand()) / 60) + 1
            if (rand() < 0.04 && limit > 1) limit--
            partition = nodes <= 6 && (cpus > 4 * nodes || rand() < 0.15) ? "large" : "main"
            gap = tasks * (-0.7 * log(1 - rand()))
            print gap, user, partition, nodes, cpus, run, limit, tasks, whole
        }
    }'
}
