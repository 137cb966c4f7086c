#!/usr/bin/env python3
"""Builds the image of the last stage of a Containerfile as an OCI layout, for machines without a container engine.

    oci.py CONTAINERFILE OUTPUT NAME

Knows the instructions FROM scratch, COPY FILE PATH, USER, EXPOSE PORT[/udp]..., STOPSIGNAL and ENTRYPOINT [...]. Files are
named from the current directory. The same files give the same image. (https://github.com/opencontainers/image-spec, version 1.)
Beside the layout OUTPUT has manifest.json, which "docker load" takes: a tar of it can be loaded by podman and by any Docker, and
is called NAME there.
"""

import hashlib
import io
import json
import os
import platform
import sys
import tarfile
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Go names them


def layer(copies):
    """A tar of the files; each is (source, path in the image)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for source, path in copies:
            data = Path(source).read_bytes()
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size, member.mode = len(data), 0o755 if os.access(source, os.X_OK) else 0o644
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def parse(text):
    """What the last stage of a Containerfile says: the files to copy, and the configuration of a container."""
    copies, config = [], {}
    for line in text[text.rindex("\nFROM ") :].splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "COPY":
            copies.append(tuple(rest.split()))
        elif word == "USER":
            config["User"] = rest
        elif word == "EXPOSE":
            config["ExposedPorts"] = {port if "/" in port else f"{port}/tcp": {} for port in rest.split()}
        elif word == "STOPSIGNAL":
            config["StopSignal"] = rest
        elif word == "ENTRYPOINT":
            config["Entrypoint"] = json.loads(rest)
        elif word and not word.startswith("#") and (word, rest) != ("FROM", "scratch"):
            sys.exit(f"oci: '{line}' is not understood")
    return copies, config


class Layout:
    def __init__(self, path):
        self.path = Path(path)
        (self.path / "blobs/sha256").mkdir(parents=True, exist_ok=True)

    def add(self, data, kind):
        """Stores a blob, and returns its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        (self.path / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    @staticmethod
    def file(descriptor):
        return "blobs/" + descriptor["digest"].replace(":", "/")

    def add_json(self, value, kind):
        return self.add(json.dumps(value, sort_keys=True).encode(), kind)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tag = f"{sys.argv[3]}:latest"
    copies, config = parse(Path(sys.argv[1]).read_text())
    layout = Layout(sys.argv[2])
    content = layout.add(layer(copies), "layer.v1.tar")
    image = {"architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux", "config": config,
             "rootfs": {"type": "layers", "diff_ids": [content["digest"]]}}  # fmt: skip
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": layout.add_json(image, "config.v1+json"), "layers": [content]}  # fmt: skip
    named = layout.add_json(manifest, "manifest.v1+json") | {"annotations": {"org.opencontainers.image.ref.name": tag}}
    index = {"schemaVersion": 2, "manifests": [named]}
    files = {"RepoTags": [tag], "Config": layout.file(manifest["config"]), "Layers": [layout.file(content)]}
    (layout.path / "index.json").write_text(json.dumps(index))
    (layout.path / "manifest.json").write_text(json.dumps([files]))
    (layout.path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


if __name__ == "__main__":
    main()
