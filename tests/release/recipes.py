#!/usr/bin/env python3
"""Checks the recipes of Spack and conda-forge that scripts/release wrote.

    tests/release/recipes.py FOLDER [ROOT]

Spack is in no registry, so that its recipe runs with a stand-in for `spack.package`, which has the names that the recipe
may use, and records what it declares. conda's is rendered by rattler-build (py-rattler-build), which refuses unknown keys,
requirements that are none and licences that SPDX lacks, where that is installed; otherwise this ends with status 77 after
Spack's. conda-forge's own linter, conda-smithy, is in no registry of Python packages; those of its rules that concern a
recipe like this one are checked here, under its numbers (https://conda-forge.org/docs/maintainer/linter/).
"""

import contextlib
import hashlib
import pathlib
import re
import sys
import tomllib
import types


class Package:
    """What `CargoPackage` offers to a recipe."""

    stage = types.SimpleNamespace(source_path="/source")

    def __init__(self, chosen, prefix):
        self.chosen, self.prefix = chosen, prefix

    @property
    def spec(self):
        return types.SimpleNamespace(satisfies=lambda variant: variant[1:] in self.chosen)


class Prefix(str):
    """A path whose attributes are the paths below it."""

    def __getattr__(self, name):
        return Prefix(f"{self}/{name}")


def spack(file, digest, version, features):
    declared = {"version": [], "variant": [], "depends_on": [], "conflicts": [], "license": []}
    calls = []

    def directive(name):
        return lambda *args, **options: declared[name].append((args, options))

    def program(path):
        return lambda *args, **options: calls.append((path, *args))

    offered = {name: directive(name) for name in declared}
    offered |= {
        "join_path": lambda *parts: "/".join(parts),
        "ancestor": lambda path: str(pathlib.PurePath(path).parent),
        "mkdirp": lambda *paths: None,
        "run_after": lambda phase: lambda function: function,
        "Executable": program,
        "which": lambda path, required: program(path),
        "open": lambda *args, **options: contextlib.nullcontext(),
    }
    text = file.read_text()
    system = types.ModuleType("spack_repo.builtin.build_systems.cargo")
    system.CargoPackage = Package
    package = types.ModuleType("spack.package")
    package.__dict__.update(offered)
    package.__all__ = list(offered)
    names = "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack"
    modules = {name: types.ModuleType(name) for name in names}
    sys.modules |= modules | {system.__name__: system, package.__name__: package}
    found = {}
    exec(compile(text, file.name, "exec"), found)
    recipe = found["Evenhand"]

    assert recipe.__doc__ and all(len(line) <= 99 for line in text.splitlines() if "version(" not in line), "Spack's style"
    assert recipe.url == f"{recipe.homepage}/evenhand-{version}.tar.gz", recipe.url
    assert declared["version"] == [((version,), {"sha256": digest})], declared["version"]
    assert declared["license"] == [(("MIT OR Apache-2.0",), {})]
    assert ("rust@1.95:",) in [args for args, _ in declared["depends_on"]], declared["depends_on"]
    assert [args[0] for args, _ in declared["variant"]] == features, (declared["variant"], features)
    assert all(options["default"] and options["description"] for _, options in declared["variant"])

    every, none = recipe(features, Prefix("/prefix")), recipe([], Prefix("/prefix"))
    assert every.build_directory == "/source/crates/cli"
    assert every.build_args[-2:] == ["--features", ",".join(features)], every.build_args
    assert none.build_args == every.build_args[:-2] and "--no-default-features" in none.build_args
    every.install_manual_and_completions()
    assert calls[0] == ("/prefix/bin/evenhand", "manual", "/prefix/share/man/man1"), calls
    assert [call[1:] for call in calls[1:]] == [("completions", shell) for shell in ("bash", "zsh", "fish")], calls
    every.test_study()
    assert calls[-1][1] == "study"


SECTIONS = "schema_version context package source build requirements tests about extra".split()


def conda_forge_rules(text, recipe):
    """The rules of conda-forge's linter that the text or the rendered recipe breaks."""
    about, requirements = recipe["about"], recipe["requirements"]
    compiles, built_by = "compiler(" in text, str(requirements["build"])
    keeps = {
        "R-000, R-001: sections and their order": re.findall(r"^(\w+):", text, re.M) == SECTIONS,
        "R-002: home page, licence, summary": all(about.get(key) for key in ("homepage", "license", "summary")),
        "R-004: maintainers are a list": isinstance(recipe["extra"]["recipe-maintainers"], list),
        "R-005: tests": bool(recipe["tests"]),
        "R-008: number of the build": "number" in recipe["build"],
        "R-009: order of requirements": list(requirements) == [k for k in ("build", "host", "run") if k in requirements],
        "R-010: a licence's name without 'License'": "license" not in about["license"].lower(),
        "R-011, R-012: one end of line at the end": text.endswith("\n") and not text.endswith("\n\n"),
        "R-013: files of the licence": bool(about.get("license_file")),
        "R-014: name": re.fullmatch("[a-z0-9_.-]+", recipe["package"]["name"]) is not None,
        "R-016: version": re.fullmatch(r"[0-9a-z_.+!]+", recipe["package"]["version"]) is not None,
        "R-019: digest of the sources": all(source.get("sha256") for source in recipe["source"]),
        "R-021, R-048: no space within a requirement's version": not re.search(r"[=<>] ", built_by),
        "R-025: spaces in expressions": not re.search(r"\$\{\{(?! )|(?<! )\}\}", text),
        "R-031: licences of the Rust dependencies": "cargo-bundle-licenses" in built_by and "third-party" in str(about["license_file"]),
        "R-033: the C library beside a compiler": not compiles or "stdlib('c')" in text,
        "R-040: a version is text": re.search(r'^  version: "', text, re.M) is not None,
        "R1-001: no selectors in comments": not re.search(r"# \[", text),
    }
    return [rule for rule, kept in keeps.items() if not kept]


def conda(file, digest, version):
    import rattler_build
    from rattler_build.tool_config import PlatformConfig

    recipe = rattler_build.Stage0Recipe.from_yaml(file.read_text())
    variants = rattler_build.VariantConfig.from_yaml(
        "c_compiler: [gcc]\nc_stdlib: [sysroot]\nc_stdlib_version: ['2.17']\nrust_compiler: [rust]\n"
    )
    render = rattler_build.RenderConfig(platform=PlatformConfig(target_platform="linux-64"))
    (rendered,) = recipe.render(variants, render)
    found = rendered.recipe.to_dict()
    assert found["package"]["name"] == "evenhand"
    (source,) = found["source"]
    assert source["url"].endswith(f"/evenhand-{version}.tar.gz") and source["sha256"] == digest, source
    built_by = str(found["requirements"]["build"])
    assert all(name in built_by for name in ("gcc_linux-64", "rust_linux-64", "cargo-auditable")), built_by
    assert found["about"]["license"] == "MIT OR Apache-2.0", found["about"]
    broken = conda_forge_rules(file.read_text(), found)
    assert not broken, f"conda-forge's rules: {broken}"
    if not found["extra"]["recipe-maintainers"]:
        print("conda: without maintainers, which the person who submits the recipe adds (R-003)")
    print(f"conda: evenhand {found['package']['version']}, rendered by rattler-build {rattler_build.rattler_build_version()}")


def main():
    folder = pathlib.Path(sys.argv[1])
    root = pathlib.Path(__file__).parents[2]
    (archive,) = folder.glob("evenhand-*.tar.gz")
    version = archive.name.removeprefix("evenhand-").removesuffix(".tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    features = tomllib.loads((root / "crates/cli/Cargo.toml").read_text())["features"]["default"]
    spack(folder / f"evenhand-{version}.package.py", digest, version, features)
    print(f"Spack: evenhand {version}, variants {', '.join(features)}")
    try:
        import rattler_build  # noqa: F401
    except ImportError:
        print("skipped: rattler-build is not installed")
        sys.exit(77)
    conda(folder / f"evenhand-{version}.recipe.yaml", digest, version)


main()
