# What tests in guests share: a folder that goes away with its guests, numbers of recordings, and sentences that hold or not.
# Sourced.
export PATH="$PATH:/usr/sbin:/sbin"
work=$(mktemp -d)
# Each experiment ends its own guests. What is left are those that this shell started itself.
trap 'jobs -p | xargs -r kill 2>/dev/null; wait; rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$(dirname "${BASH_SOURCE[0]}")/../sentences.sh"

agent_is_there() { "$evenhand" agent --help >/dev/null 2>&1; }

# within SENTENCE NUMBER LOW HIGH
within() {
    if awk -v x="$2" -v low="$3" -v high="$4" 'BEGIN { exit !(x != "" && x + 0 >= low && x + 0 <= high) }'; then
        passed=$((passed + 1))
        printf 'holds: %s: %s\n' "$1" "$2"
    else
        failed=$((failed + 1))
        printf 'does not hold: %s: %s is not within %s and %s\n' "$1" "${2:-nothing}" "$3" "$4"
    fi
}

# fact GUEST NAME: what its role found.
fact() { awk -v name="$2" '$1 == "fact" && $2 == name { print $3 }' "$work/$1/console" | tr -d '\r'; }

# mean RECORDING cpu|disk GROUP FROM [TO]: in cores, or bytes a second.
mean() {
    awk -F, -v what="$2" -v group="$3" -v from="$4" -v to="${5:-1e9}" '
        NR > 1 && $1 >= from && $1 <= to && $2 == group { n++; sum += what == "cpu" ? $4 : $5 }
        END { if (n) printf "%.4f", sum / n }' "$kept/$1.csv"
}

# share RECORDING cpu|disk GROUP FROM: of what all groups of that node had.
share() {
    awk -F, -v what="$2" -v group="$3" -v from="$4" '
        NR > 1 && $1 >= from { x = what == "cpu" ? $4 : $5; all += x; if ($2 == group) mine += x }
        END { if (all) printf "%.4f", mine / all }' "$kept/$1.csv"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.4f", a / b }'; }
