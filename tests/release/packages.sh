#!/usr/bin/env bash
# Packs a built program twice, and checks the packages with their own tools: the same bytes, nothing of this machine in them,
# lintian and rpm content, the archive and the image usable.
#   tests/release/packages.sh EVENHAND
# Installs nothing; tests/release/install.sh does.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/release/packages.sh EVENHAND}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source tests/sentences.sh
release() { scripts/release "$@"; }

holds "a command line without --out is refused" ends 2 release --program "$evenhand"
holds "so is a part that there is not" ends 2 release --out "$work/none" --without man
holds "so is a program that there is not" ends 2 release --out "$work/none" --program "$work/none"
prints "with its name" "$work/none: no such program"

# Two packings side by side, each with a time zone, a language and permissions of its own. The wheel is the step python's.
pack() { (umask "$3" && TZ=$2 LC_ALL=$4 scripts/release --program "$evenhand" --out "$1" --without wheel) >"$1.log" 2>&1; }
pack "$work/first" Asia/Tokyo 027 C.UTF-8 &
first=$!
pack "$work/second" America/Lima 000 C &
second=$!
holds "the program is packed" wait "$first"
holds "and packed again" wait "$second"
cat "$work/first.log"
# Without packages there is nothing else to check.
[ "$failed" = 0 ] || { cat "$work/second.log"; summary; exit 1; }
cd "$work/first" || exit 1
files=(*.tar.zst ./*.deb ./*.rpm ./*.oci.tar ./*.tar.gz ./*.py ./*.yaml)
holds "there are two archives, four Debian packages, four RPMs, an image and two recipes" test ${#files[@]} = 13
holds "SHA256SUMS holds them all" test "$(wc -l <SHA256SUMS)" = 13
holds "and is right" sha256sum --check --quiet SHA256SUMS
for file in *; do holds "$file has the same bytes when it is packed again" cmp "$file" "../second/$file"; done

# The archive.
mkdir "$work/archive"
holds "the archive unpacks" tar --zstd -xf ./*.tar.zst -C "$work/archive" --strip-components 1
holds "its program runs" "$work/archive/bin/evenhand" --version
prints "and says its version" '^evenhand [0-9]'
for file in share/man/man1/evenhand-study.1.gz share/bash-completion/completions/evenhand share/zsh/site-functions/_evenhand \
    share/fish/vendor_completions.d/evenhand.fish share/doc/evenhand/third-party-licences.txt share/doc/evenhand/LICENSE-MIT \
    share/doc/evenhand/evenhand.cdx.json etc/evenhand/agent.toml lib/systemd/system/evenhand-agent.service \
    share/evenhand/agent.schema.json lib/systemd/system/evenhand-slurm.service lib/systemd/system/evenhand-serve.service; do
    holds "the archive has $file" test -s "$work/archive/$file"
done
holds "its configuration of the agent is valid" "$work/archive/bin/evenhand" config check "$work/archive/etc/evenhand/agent.toml"
holds "its completions are valid for bash" bash -n "$work/archive/share/bash-completion/completions/evenhand"
holds "its bill of materials names what it is built from" grep -q '"clap"' "$work/archive/share/doc/evenhand/evenhand.cdx.json"
holds "each crate of the bill has a licence in the list" python3 - "$work/archive/share/doc/evenhand" <<'PY'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
listed = (folder / "third-party-licences.txt").read_text()
crates = [c for c in json.loads((folder / "evenhand.cdx.json").read_text())["components"] if "hashes" in c]
missing = [c["name"] for c in crates if f"{c['name']} {c['version']}: " not in listed]
sys.exit(f"{len(crates)} crates, without a licence: {missing}" if missing or len(crates) < 100 else 0)
PY
if type -P mandoc >/dev/null; then
    for page in "$work"/archive/share/man/man1/*.gz; do
        gzip -dc "$page" >"$work/page.1"
        holds "${page##*/} is a page without errors" mandoc -T lint -W error "$work/page.1"
    done
fi
# What this machine adds: the home folder, this folder, the temporary folder. Of the text files; scripts/release checks the
# program that it builds.
found=$(grep -rIlF -e "$root" -e "$work" -e "$HOME/" "$work/archive" || true)
holds "no text has a path of this machine: $found" test -z "$found"

# The sources, and the recipes that name them.
mkdir "$work/source"
holds "the source archive unpacks" tar -xf ./*.tar.gz -C "$work/source" --strip-components 1
holds "to what is committed" test "$(cd "$work/source" && find . ! -type d | wc -l)" = "$(git -C "$root" ls-tree -r --name-only HEAD | wc -l)"
holds "with the versions of all dependencies" test -s "$work/source/Cargo.lock"
python=python3
# With the whole PATH: the environment links to the interpreter that makes it.
if PATH=${PROGRAMS_SEARCH:-$PATH} python3 -m venv "$work/venv" >/dev/null &&
    PATH=${PROGRAMS_SEARCH:-$PATH} "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$root/tests/release/requirements.txt"; then
    python=$work/venv/bin/python
fi
# 77: rattler-build could not be installed, and conda's was not rendered.
recipes() { "$python" "$root/tests/release/recipes.py" "$work/first" || [ $? = 77 ]; }
holds "the recipes of Spack and conda-forge are valid, and name the sources" recipes
sed 's/^/recipes: /' "$work/printed.log"

# Debian. With the whole PATH: lintian runs many programs of its own.
check_policy() { PATH=${PROGRAMS_SEARCH:-$PATH} lintian "$@"; }
holds "lintian has no errors" check_policy --fail-on error --tag-display-limit 0 ./*.deb
sed 's/^/lintian: /' "$work/printed.log"
listing() { dpkg-deb --contents "$1"; }
holds "the program's package lists" listing ./evenhand_*.deb
prints "the program, as root's" '^-rwxr-xr-x root/root .* ./usr/bin/evenhand$'
for service in agent slurm serve; do
    holds "the package of the service $service lists" listing ./evenhand-"$service"_*.deb
    prints "its unit" "./usr/lib/systemd/system/evenhand-$service.service$"
    dpkg-deb --ctrl-tarfile ./evenhand-"$service"_*.deb | tar -xO ./conffiles >"$work/conffiles"
    holds_in "its options are a configuration file" "^/etc/evenhand/$service.env$" "$work/conffiles"
    for script in postinst prerm postrm; do
        dpkg-deb --ctrl-tarfile ./evenhand-"$service"_*.deb | tar -xO "./$script" >"$work/script.sh"
        holds "its $script is a valid script" sh -n "$work/script.sh"
    done
done

# RPM, with a database of its own: there may be none here.
query() { rpm --dbpath "$work/rpmdb" "$@"; }
for file in ./*.rpm; do
    holds "$file is whole" query -K --nosignature "$file"
done
holds "the program's RPM lists" query -qlp ./evenhand-[0-9]*.rpm
prints "the program" '^/usr/bin/evenhand$'
prints "its pages" '^/usr/share/man/man1/evenhand-study.1.gz$'
holds "the agent's RPM needs" query -qp --requires ./evenhand-agent-*.rpm
prints "the program of its own version" '^evenhand = '
holds "the agent's RPM has configuration files" query -qcp ./evenhand-agent-*.rpm
prints "of which one is the agent's" '^/etc/evenhand/agent.toml$'
holds "no machine's name is in it" query -qp --qf '%{buildhost} %{buildtime}\n' ./evenhand-agent-*.rpm
prints "but the commit's time" "^evenhand $(git -C "$root" log -1 --format=%ct)\$"
# Into an empty folder, as root only: files and the record of them, without the scripts, which need a system.
if [ "$(id -u)" = 0 ]; then
    mkdir "$work/system"
    into() { query --root "$work/system" "$@"; }
    holds "the RPMs install" into -i --nodeps --noscripts ./*.rpm
    holds "as they were packed" into -V --nodeps evenhand evenhand-agent evenhand-slurm evenhand-serve
    printf '# of this site\n' >>"$work/system/etc/evenhand/agent.toml"
    holds "they are erased" into -e --noscripts evenhand-agent evenhand-slurm evenhand-serve evenhand
    holds "an edited configuration is kept" grep -q '^# of this site$' "$work/system/etc/evenhand/agent.toml.rpmsave"
    left=$(find "$work/system" -path "*$work/rpmdb" -prune -o -path '*/.rpmdb' -prune -o -type f ! -name agent.toml.rpmsave -print)
    holds "and nothing else: $left" test -z "$left"
fi

# The image: unpacked as an engine does, and run as its user where this machine allows it.
mkdir "$work/layout" "$work/image"
holds "the image is an archive of a layout" tar -xf ./*.oci.tar -C "$work/layout"
holds "every part of the image has the digest that it is named by" python3 - "$work/layout" "$work/image" <<'PY'
import hashlib, json, pathlib, sys, tarfile
layout, out = map(pathlib.Path, sys.argv[1:])
def blob(described):
    content = (layout / "blobs" / described["digest"].replace(":", "/")).read_bytes()
    assert hashlib.sha256(content).hexdigest() == described["digest"][7:] and len(content) == described["size"], described
    return content
manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]))
config = json.loads(blob(manifest["config"]))
assert config["config"]["User"] == "65532:65532", config
assert config["config"]["Entrypoint"] == ["/usr/bin/evenhand"], config
(layout / "layer.tar.gz").write_bytes(blob(manifest["layers"][0]))
with tarfile.open(layout / "layer.tar.gz") as layer:
    layer.extractall(out, filter="data")
PY
if type -P umoci >/dev/null; then
    tag=$(sed -n 's/.*"org.opencontainers.image.ref.name":"\([^"]*\)".*/\1/p' "$work/layout/index.json")
    holds "umoci unpacks the image" umoci unpack --rootless --image "$work/layout:$tag" "$work/bundle"
    holds "to the same program" cmp "$work/bundle/rootfs/usr/bin/evenhand" "$work/image/usr/bin/evenhand"
fi
if [ "$(id -u)" = 0 ] && ! ldd "$work/image/usr/bin/evenhand" >/dev/null 2>&1; then
    mkdir -p "$work/image/data"
    chown 65532:65532 "$work/image/data"
    holds "the program runs as the image's user, who is not root" \
        chroot --userspec=65532:65532 "$work/image" /usr/bin/evenhand study --out /tmp/study
fi
# By podman, as docs/src/how-to/install.md describes, with a storage of its own and without a network. As root only: then it
# needs neither user namespaces nor ranges of users.
if [ "$(id -u)" = 0 ] && type -P podman >/dev/null; then
    engine=(podman --root "$work/containers" --runroot "$work/containers-run" --storage-driver vfs --cgroup-manager cgroupfs
        --events-backend none --runtime crun)
    # A program that is not static finds the libraries of this machine, each at its place.
    libraries=()
    while read -r file; do libraries+=(-v "$file:$file:ro"); done < <(ldd "$work/image/usr/bin/evenhand" 2>/dev/null | grep -o '/[^ ]*')
    # Limits that this machine allows: podman's own are higher than a process may have that lacks CAP_SYS_RESOURCE.
    limits=(--ulimit "nofile=1024:1024" --ulimit "nproc=1024:1024")
    # crun needs the hierarchy of cgroup v2 alone. Its mount is this test's, and goes with it.
    contained() {
        PATH=${PROGRAMS_SEARCH:-$PATH} unshare --mount --propagation private sh -c '
            [ -e /sys/fs/cgroup/cgroup.controllers ] || { umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; } || exit 125
            exec "$@"' - timeout 300 "${engine[@]}" run --rm --cgroups=disabled --network=none "${limits[@]}" "${libraries[@]}" "$@"
    }
    load() { PATH=${PROGRAMS_SEARCH:-$PATH} "${engine[@]}" pull -q "oci-archive:$1"; }
    holds "podman loads the image" load ./*.oci.tar
    image=$(tail -n 1 "$work/printed.log")
    holds "podman runs the image's program" contained "$image" --version
    prints "which says its version" '^evenhand [0-9]'
    mkdir "$work/data"
    chown 65532:65532 "$work/data"
    holds "it writes where it starts" contained -v "$work/data:/data" "$image" study --out report
    holds "and the folder that is mounted there has the report" test -s "$work/data/report/index.html"
    holds "of the image's user" test "$(stat -c %u:%g "$work/data/report/index.html")" = 65532:65532
fi

# The units: what `systemd-analyze security` calls the exposure, in tenths. The reason for each right that is open is in the
# unit; more than this is a decision.
exposure() { systemd-analyze security --offline=yes --no-pager --threshold="$2" "$root/packaging/systemd/evenhand-$1.service"; }
if type -P systemd-analyze >/dev/null; then
    holds "the Slurm driver's exposure is at most 1.2" exposure slurm 12
    holds "the exposure of the pages is at most 2.0" exposure serve 20
    holds "the agent's exposure is at most 3.0" exposure agent 30
    holds "a lower number than the agent's is not met" ends 1 exposure agent 20
fi

summary
