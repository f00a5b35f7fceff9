# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Evenhand(CargoPackage):
    """Fair sharing of several resources among users: replays a site's accounting under other
    policies, audits who received what, keeps the queue of a Slurm in a policy's order, and sets
    the weights of running workloads on nodes."""

    homepage = "@URL@"
    url = "@URL@/evenhand-@VERSION@.tar.gz"

    license("MIT OR Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("agent", default=True, description="Dividing nodes among running workloads")
    variant("analysis", default=True, description="Allocations, audits, waits, forecasts")
    variant("formats", default=True, description="Parquet, zstd, bzip2, xz and tar")
    variant("reproduce", default=True, description="Running the papers' experiments again")
    variant("serve", default=True, description="Web pages on the queue of Slurm")
    variant("slurm", default=True, description="Keeping the queue of Slurm in a policy's order")
    variant("study", default=True, description="Studies and sweeps, which every build has")
    conflicts("~slurm", when="+serve", msg="the pages need what reads Slurm")

    # zstd and ring have parts in C.
    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")

    @property
    def build_directory(self):
        return join_path(self.stage.source_path, "crates", "cli")

    @property
    def build_args(self):
        every = ("agent", "analysis", "formats", "reproduce", "serve", "slurm", "study")
        features = [name for name in every if self.spec.satisfies(f"+{name}")]
        args = ["--locked", "--no-track", "--profile", "dist", "--no-default-features"]
        return [*args, "--features", ",".join(features)] if features else args

    @run_after("install")
    def install_manual_and_completions(self):
        evenhand = Executable(join_path(self.prefix.bin, "evenhand"))
        mkdirp(self.prefix.share.man.man1)
        evenhand("manual", self.prefix.share.man.man1)
        for shell, path in (
            ("bash", "bash-completion/completions/evenhand"),
            ("zsh", "zsh/site-functions/_evenhand"),
            ("fish", "fish/vendor_completions.d/evenhand.fish"),
        ):
            file = join_path(self.prefix.share, path)
            mkdirp(ancestor(file))
            with open(file, "w", encoding="utf-8") as out:
                evenhand("completions", shell, output=out)

    def test_study(self):
        """A study of a generated workload."""
        evenhand = which(join_path(self.prefix.bin, "evenhand"), required=True)
        evenhand("study", "--out", "study")
