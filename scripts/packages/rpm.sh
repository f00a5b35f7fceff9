# RPMs: evenhand, evenhand-agent, evenhand-slurm, evenhand-serve. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# pack_rpm STAGE DIR
pack_rpm() {
    local folder=$work/rpm file
    mkdir -p "$folder"
    sed -e "s|@VERSION@|$version|" -e "s|@STAGE@|$1|g" packaging/rpm/evenhand.spec >"$folder/evenhand.spec"
    # The payload's compression is one that RHEL 8 reads, and one thread's, which does not depend on the machine. A database of
    # its own: rpm may not have one here. With the whole PATH: rpmbuild runs programs of its own.
    PATH=${PROGRAMS_SEARCH:-$PATH} rpmbuild -bb --quiet --target x86_64-linux --dbpath "$folder/db" --define "_topdir $folder" --define "_rpmdir $folder/rpms" \
        --define "_buildhost evenhand" --define "_binary_payload w6.xzdio" --define "_source_date_epoch_from_changelog 0" \
        --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
        --define "_tmppath $folder" "$folder/evenhand.spec" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; refuse 3 "rpmbuild failed"; }
    for file in "$folder"/rpms/x86_64/*.rpm; do
        mv "$file" "$2/"
        package "$2/${file##*/}"
    done
}
