# What a real run leaves for its simulation, and that simulation. Sourced; $evenhand is the program.
# shellcheck shell=bash

# Whether no job since then waits or runs, by sacct.
all_are_over() { ! sacct -a -X -n -S "$1" -o State | grep -Eq "RUNNING|PENDING|COMPLETING|SUSPENDED"; }

# keep_run DIR BEGIN: what the running Slurm shows of its jobs since BEGIN.
keep_run() {
    # slurmdbd learns of the last ends a little later.
    until_true 60 all_are_over "$2"
    mkdir -p "$1"
    # Constraints and commands can have the usual delimiter; no command of these tests has this one.
    sacct -a -X -P --delimiter=';' --noconvert --duplicates -S "$2" -o \
        JobIDRaw,JobID,JobName,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,Suspended,TimelimitRaw,NNodes,NCPUS,ReqTRES,AllocTRES,Constraints,NodeList,Flags,SubmitLine \
        >"$1/sacct.txt"
    sacctmgr -P show assoc >"$1/assoc.txt"
    sacctmgr -P show qos >"$1/qos.txt"
    cp "$SLURM_CONF" "$1/slurm.conf"
    # What it decided when: for a look at where the simulation departs from it, with --conf DebugFlags=….
    cp "$(dirname "$SLURM_CONF")/../log/slurmctld.log" "$1/slurmctld.log"
}

# one_row_a_job DIR real|asked: the table of sacct with one row a job: its first submission and its last run. Of a job that was cancelled
# by preemption `asked` has the run time of the mix, r45 in its name, as if it had run so long.
# Priorities are computed every minute from slurmctld's start on, which sacct does not show, and in the simulation at whole minutes:
# all times are moved by the difference.
one_row_a_job() {
    awk -F';' -v OFS=';' -v which="$2" -v by="$(($(cat "$1/computed" 2>/dev/null || echo 0) % 60))" '
        function seconds(time) { gsub(/[-T:]/, " ", time); return mktime(time) }
        function text(time) { return strftime("%Y-%m-%dT%H:%M:%S", time) }
        NR == 1 { for (i = 1; i <= NF; i++) { at[$i] = i; if ($i ~ /^(Submit|Eligible|Start|End)$/) times[i] }; print; next }
        {
            id = $at["JobIDRaw"]
            if (!(id in first)) { order[++jobs] = id; first[id] = $at["Submit"] }
            if ($at["Submit"] < first[id]) first[id] = $at["Submit"]
            if (!(id in last) || $at["Submit"] >= last_submit[id]) { last[id] = $0; last_submit[id] = $at["Submit"] }
        }
        END {
            for (n = 1; n <= jobs; n++) {
                id = order[n]
                $0 = last[id]
                if (first[id] != $at["Submit"]) $at["Submit"] = $at["Eligible"] = first[id]
                if (which == "asked" && $at["State"] ~ /PREEMPTED/) {
                    $at["ElapsedRaw"] = substr($at["JobName"], 2)
                    $at["End"] = text(seconds($at["Start"]) + $at["ElapsedRaw"])
                    $at["State"] = "COMPLETED"
                }
                for (i in times) if ($i ~ /^[0-9]/) $i = text(seconds($i) - by)
                print
            }
        }' "$1/sacct.txt" | {
        # In the order of submission, which in a burst is that of the ids; tasks of arrays have raw ids of later jobs.
        IFS= read -r header && printf '%s\n' "$header"
        sort -t';' -s -k 2,2V
    }
}

# simulate DIR: what was kept there, simulated; leaves study.txt and the folder study here. Status 1 with a message if that fails.
simulate() {
    local options=() processors=() release
    one_row_a_job "$1" asked >sacct.txt
    [ ! -s "$1/qos.txt" ] || options+=(--qos "$1/qos.txt")
    [ ! -s "$1/reservations.txt" ] || {
        moved_reservations "$1" >reservations.txt
        options+=(--reservations reservations.txt)
    }
    release=$(sed -n 's/.*version \([0-9]*\.[0-9]*\.[0-9]*\) started.*/\1/p' "$1/slurmctld.log" 2>/dev/null | head -n 1)
    [ -z "$release" ] || options+=(--release "$release")
    "$evenhand" site import --slurm-conf "$1/slurm.conf" --assoc "$1/assoc.txt" "${options[@]}" -o site >import.txt 2>&1 ||
        { cat import.txt && return 1; }
    # Of jobs that have whole nodes sacct's allocated processors are those of the nodes that they had.
    ! grep -q EXCLUSIVE "$1/slurm.conf" || processors=(--processors requested)
    "$evenhand" study sacct.txt "${processors[@]}" --site site --scheduler slurm --release submit --policy site --tasks-csv --out study >study.txt 2>&1 ||
        { cat study.txt && return 1; }
}

# moved_reservations DIR: the text of scontrol, moved as the jobs are.
moved_reservations() {
    awk -v by="$(($(cat "$1/computed" 2>/dev/null || echo 0) % 60))" '
        function seconds(time) { gsub(/[-T:]/, " ", time); return mktime(time) }
        {
            for (i = 1; i <= NF; i++) if (split($i, part, "=") == 2 && part[1] ~ /^(StartTime|EndTime)$/)
                $i = part[1] "=" strftime("%Y-%m-%dT%H:%M:%S", seconds(part[2]) - by)
            print
        }' "$1/reservations.txt"
}
