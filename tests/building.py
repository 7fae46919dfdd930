"""Building and installing the package away from the clone, with nothing but what the built files hold."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "src" / "glassformer" / "page" / "bundle" / "index.html"

NOWHERE = "http://127.0.0.1:9"
"""A proxy that answers nothing: a build that asks the network for something fails at once."""


def without_node_and_network() -> dict[str, str]:
    """An environment in which neither Node nor a package index can be found."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") and k not in {"PYTHONPATH"}}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "npm_config_proxy"), NOWHERE)
    return {**kept, **proxies, "PIP_NO_INDEX": "1", "PATH": str(Path(sys.executable).parent)}


def run(command: list[str | Path], *, cwd: Path, env: dict[str, str]) -> str:
    """Standard output of `command`, which must succeed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(kind: str, source: Path, into: Path) -> Path:
    """Build `source` as `sdist` or `wheel` into the folder `into`, without Node and network; the one file made."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", into, source]
    run(command, cwd=into.parent, env=without_node_and_network())
    (made,) = into.iterdir()
    return made


def unpack(sdist: Path, into: Path) -> Path:
    """The folder that the sdist holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (folder,) = into.iterdir()
    return folder


def environment_with(wheel: Path, folder: Path) -> Path:
    """A new environment in `folder` with `wheel` installed; its dependencies are lent by the running environment.

    Returns the folder of its commands. Nothing of the clone is on its path: a `.pth` file adds the folder of installed
    packages alone, and `.pth` files inside that folder (an editable install) are not followed.
    """
    run([sys.executable, "-m", "venv", "--without-pip", folder], cwd=folder.parent, env=without_node_and_network())
    bin_folder = folder / ("Scripts" if os.name == "nt" else "bin")
    python = bin_folder / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel]
    run(install, cwd=folder.parent, env=without_node_and_network())
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run([python, "-I", "-c", ask], cwd=folder.parent, env=without_node_and_network()).strip())
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return bin_folder
