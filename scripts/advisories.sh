#!/usr/bin/env bash
# Known vulnerabilities of the dependencies in Cargo.lock, by cargo-deny, from the copy of the RustSec database in
# scripts/advisory-db.tar.zst: the check needs no network, and the same commit always gives the same answer.
#   scripts/advisories.sh                  checks, and says how old the copy is; age alone is no failure
#   scripts/advisories.sh update           replaces the copy by the newest database, where a network allows
#   scripts/advisories.sh update ARCHIVE   replaces it by that archive (.tar.zst of the database's tree)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.tools/bin:$PATH"

archive=scripts/advisory-db.tar.zst
# Where cargo-deny looks for the official database below `db-path` in deny.toml: its name has a digest of the URL.
database=.tools/advisory-dbs/advisory-db-3157b0e258782691
# From how many days on the copy is called old.
OLD=60

# The date of the newest advisory in a tree of the database.
newest() { grep -rh --include='*.md' '^date = "' "$1/crates" | sed 's/.*"\(.*\)".*/\1/' | sort | tail -n 1; }

# As a repository with one commit, because cargo-deny opens nothing else.
unpack() {
    rm -rf "$database"
    mkdir -p "$database"
    zstd -dcq "$archive" | tar -x --no-same-owner -C "$database" --exclude=.git
    git -C "$database" init -q
    git -C "$database" add -A
    git -C "$database" -c user.name=evenhand -c user.email=evenhand@localhost -c commit.gpgsign=false commit -qm "The copy"
}

check() {
    local date age
    unpack
    date=$(newest "$database")
    age=$((($(date +%s) - $(date -d "$date" +%s)) / 86400))
    echo "the copy of the RustSec database has advisories until $date, $age days ago"
    [ "$age" -le "$OLD" ] || echo "OLD: later vulnerabilities are not known to it; run scripts/advisories.sh update where there is a network"
    cargo deny --offline check --hide-inclusion-graph advisories
}

update() {
    local new
    new=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$new'" EXIT
    if [ $# = 1 ]; then
        cp "$1" "$new/archive"
        mkdir "$new/tree"
        zstd -dcq "$new/archive" | tar -x --no-same-owner -C "$new/tree" --exclude=.git
    else
        rm -rf "$database"
        cargo deny fetch db
        cp -r "$database" "$new/tree"
    fi
    [ -n "$(newest "$new/tree")" ] || { echo "no advisories in it; expected the tree of the RustSec database" >&2; exit 1; }
    # The same tree always gives the same archive.
    tar -c --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --exclude=.git -C "$new/tree" . |
        zstd -19 -q -o "$new/archive" -f
    mv "$new/archive" "$archive"
    chmod 644 "$archive"
    echo "$archive has advisories until $(newest "$new/tree"); commit it"
}

case ${1:-} in
'') check ;;
update) shift && update "$@" ;;
*) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
