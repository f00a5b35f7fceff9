# The source archive, and recipes of Spack and conda-forge that name it by its digest. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# pack_source DIR: what is committed, not what lies around.
pack_source() {
    local name="evenhand-$version" digest recipe
    git archive --format=tar --prefix="$name/" "$commit" | gzip -9n >"$1/$name.tar.gz"
    package "$1/$name.tar.gz"
    digest=$(sha256sum "$1/$name.tar.gz")
    for recipe in spack/package.py conda/recipe.yaml; do
        # A version of conda's has no tilde.
        sed -e "s|@VERSION@|$version|g" -e "s|@CONDA_VERSION@|${version/\~git/.dev}|" -e "s|@SHA256@|${digest%% *}|" \
            -e "s|@URL@|$url|g" "packaging/$recipe" >"$1/$name.${recipe#*/}"
        package "$1/$name.${recipe#*/}"
    done
}
