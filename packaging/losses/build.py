"""Builds the wheel of `metric_losses` from the folder `losses`, without network: python packaging/losses/build.py."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def build_wheel(to: Path) -> Path:
    """Build the wheel and return its path.

    Args:
        to: Folder for the wheel; it is made if it does not exist.

    Raises:
        subprocess.CalledProcessError: The build fails; setuptools must be installed.
    """
    before = set(to.glob("*.whl"))
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch)
        shutil.copytree(ROOT / "losses", source / "metric_losses", ignore=shutil.ignore_patterns("__pycache__"))
        for file in (HERE / "pyproject.toml", HERE / "README.md", ROOT / "LICENSE"):
            shutil.copy(file, source)
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(to)]
        subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True)
    (wheel,) = set(to.glob("*.whl")) - before or before
    return wheel


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("dist"), help="folder for the wheel; default: dist")
    print(build_wheel(parser.parse_args().to))
