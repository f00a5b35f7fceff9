#!/usr/bin/env python3
"""Writes a container image with one static program as an archive of the Open Container Initiative's layout.

    scripts/packages/image.py --program FILE --version VERSION --revision COMMIT OUT.tar

Engines load it as `oci-archive:OUT.tar`. The program runs as user 65532, in /data. All times are SOURCE_DATE_EPOCH, so the
same program gives the same bytes.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import tarfile

USER = 65532
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\nevenhand:x:{USER}:{USER}:evenhand:/data:/sbin/nologin\n"
GROUP = f"root:x:0:\nevenhand:x:{USER}:\n"


def member(name, mode, owner=0, kind=tarfile.REGTYPE, size=0):
    entry = tarfile.TarInfo(name)
    entry.mode, entry.type, entry.size = mode, kind, size
    entry.uid = entry.gid = owner
    entry.mtime = EPOCH
    return entry


def layer(program):
    """The file system, as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = {"etc": (0o755, 0), "tmp": (0o1777, 0), "usr": (0o755, 0), "usr/bin": (0o755, 0), "data": (0o755, USER)}
        for name, (mode, owner) in folders.items():
            archive.addfile(member(name, mode, owner, tarfile.DIRTYPE))
        for name, mode, content in [
            ("etc/group", 0o644, GROUP.encode()),
            ("etc/passwd", 0o644, PASSWD.encode()),
            ("usr/bin/evenhand", 0o755, program),
        ]:
            archive.addfile(member(name, mode, size=len(content)), io.BytesIO(content))
    return buffer.getvalue()


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("out")
    arguments = parser.parse_args()

    with open(arguments.program, "rb") as file:
        tree = layer(file.read())
    packed = gzip.compress(tree, compresslevel=9, mtime=0)
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.revision": arguments.revision,
        "org.opencontainers.image.title": "evenhand",
        "org.opencontainers.image.version": arguments.version,
    }
    config = compact({
        "architecture": "amd64",
        "config": {
            "Cmd": ["--help"],
            "Entrypoint": ["/usr/bin/evenhand"],
            "Env": ["PATH=/usr/bin"],
            "Labels": labels,
            "User": f"{USER}:{USER}",
            "WorkingDir": "/data",
        },
        "created": created,
        "history": [{"created": created, "created_by": "scripts/packages/image.py"}],
        "os": "linux",
        "rootfs": {"diff_ids": [digest(tree)], "type": "layers"},
    })

    def described(media_type, content, **more):
        return {"digest": digest(content), "mediaType": media_type, "size": len(content), **more}

    manifest = compact({
        "annotations": labels,
        "config": described(CONFIG, config),
        "layers": [described(LAYER, packed)],
        "mediaType": MANIFEST,
        "schemaVersion": 2,
    })
    # A reference's tag has no "~".
    tag = {"org.opencontainers.image.ref.name": arguments.version.replace("~", "-")}
    index = compact({
        "manifests": [described(MANIFEST, manifest, annotations=tag, platform={"architecture": "amd64", "os": "linux"})],
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "schemaVersion": 2,
    })
    files = {"index.json": index, "oci-layout": compact({"imageLayoutVersion": "1.0.0"})}
    files |= {"blobs/sha256/" + digest(content)[7:]: content for content in (config, manifest, packed)}
    with tarfile.open(arguments.out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in ("blobs", "blobs/sha256"):
            archive.addfile(member(name, 0o755, kind=tarfile.DIRTYPE))
        for name in sorted(files):
            archive.addfile(member(name, 0o644, size=len(files[name])), io.BytesIO(files[name]))


if __name__ == "__main__":
    main()
