# Debian's packages: evenhand, evenhand-agent, evenhand-slurm, evenhand-serve. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# Debian's own variables say who packs.
readonly MAINTAINER="${DEBFULLNAME:-evenhand authors} <${DEBEMAIL:-evenhand@evenhand.invalid}>"

# pack_debian STAGE DIR
pack_debian() {
    local name tree documents debian_version=$version-1
    for name in evenhand evenhand-agent evenhand-slurm evenhand-serve; do
        tree=$work/debian/$name documents=$work/debian/$name/usr/share/doc/$name
        mkdir -p "$tree"
        cp -a "$1/$name/." "$tree/"
        mkdir -p "$tree/DEBIAN" "$documents"
        debian_documents "$name" "$tree" "$documents"
        debian_control "$name" "$tree"
        dated "$tree"
        # As this user, not as root, independent of the staged tree's owner: the archive says root.
        dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$tree" "$2/${name}_${debian_version}_$(debian_architecture "$name").deb" >/dev/null
        package "$2/${name}_${debian_version}_$(debian_architecture "$name").deb"
    done
}

debian_architecture() { control_of "$1" | sed -n 's/^Architecture: //p'; }

# control_of PACKAGE: its paragraph.
control_of() { awk -v name="$1" 'BEGIN { RS = ""; FS = "\n" } $1 == "Package: " name' packaging/debian/control; }

# Debian keeps licences and completions elsewhere, and has a changelog and a copyright of its own form.
debian_documents() {
    local name=$1 tree=$2 documents=$3
    if [ "$name" = evenhand ]; then
        mv "$tree/usr/share/licenses/evenhand/third-party-licences.txt" "$documents/"
        rm -r "$tree/usr/share/licenses"
        mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"
        mv "$documents/CHANGELOG.md" "$documents/changelog"
        gzip -9n "$documents/changelog" "$documents/third-party-licences.txt" "$documents/evenhand.cdx.json"
        install -D -m 644 packaging/debian/evenhand.lintian-overrides "$tree/usr/share/lintian/overrides/evenhand"
    fi
    # The text of the licence, without the heading and the holders, as a field of the form.
    sed -n '/^Permission is/,$s/^/ /p' LICENSE-MIT | sed 's/^ $/ ./' >"$work/expat"
    sed -e "/^@MIT@$/{r $work/expat" -e 'd}' packaging/debian/copyright >"$documents/copyright"
    printf '%s (%s) unstable; urgency=medium\n\n  * See changelog.gz of the package evenhand.\n\n -- %s  %s\n' "$name" "$debian_version" \
        "$MAINTAINER" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$documents/changelog.Debian.gz"
}

# debian_control PACKAGE TREE: the folder DEBIAN, which is no part of what is installed.
debian_control() {
    local name=$1 tree=$2 script
    control_of "$name" | sed -e "s|@VERSION@|$debian_version|g" -e "s|@MAINTAINER@|$MAINTAINER|" \
        -e "s|@SIZE@|$(find "$tree" -path "$tree/DEBIAN" -prune -o -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')|" \
        >"$tree/DEBIAN/control"
    [ ! -d "$tree/etc" ] || (cd "$tree" && find etc -type f | sort | sed 's|^|/|') >"$tree/DEBIAN/conffiles"
    (cd "$tree" && find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -printf '%P\n' | sort | xargs md5sum) >"$tree/DEBIAN/md5sums"
    for script in postinst prerm postrm; do
        [ ! -e "packaging/debian/$name.$script" ] || install -m 755 "packaging/debian/$name.$script" "$tree/DEBIAN/$script"
    done
}
