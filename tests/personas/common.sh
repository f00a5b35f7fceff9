# Sourced by the scripts of the personas: a command of the documentation must succeed, take at most 30 s, and print at most
# 100 columns.
set -euo pipefail
evenhand=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8

# ask QUESTION STATUS COMMAND…: runs `evenhand COMMAND…`, whose exit status must be STATUS (0, or 1 for "does not hold").
# Its standard output is in $work/answer.
ask() {
    local question=$1 expected=$2 begun status=0 took
    shift 2
    begun=$(date +%s)
    (cd "$work" && "$evenhand" "$@" >answer 2>messages) || status=$?
    took=$(($(date +%s) - begun))
    echo "$question  (evenhand $*; $took s)"
    if [ "$status" != "$expected" ]; then
        echo "exit status $status, expected $expected" >&2
        cat "$work/messages" >&2
        return 1
    fi
    if [ "$took" -gt 30 ]; then
        echo "took $took s, at most 30 are allowed" >&2
        return 1
    fi
    # JSON is for programs.
    case " $* " in *" --format json "*) return 0 ;; esac
    if [ "$(wc -L <"$work/answer")" -gt 100 ]; then
        echo "lines of more than 100 columns:" >&2
        cat "$work/answer" >&2
        return 1
    fi
}

# answered TEXT: the last answer has this text.
answered() {
    grep -qF -e "$1" "$work/answer" && return
    echo "the answer lacks: $1" >&2
    cat "$work/answer" >&2
    return 1
}
