#!/bin/sh
# Make an environment that has LiteLLM with its proxy, and what sidelong-client needs, for tests/test_litellm.py and
# benchmarks/routing.py. It has one of its own, since LiteLLM pins the versions of packages that others need too, and
# takes more than a minute to install. Where there is no network the tests are skipped, and say so.
set -eu
into=$1

rm -rf "$into"
"${PYTHON:-python3}" -m venv "$into"
"$into/bin/python" -c 'import tomllib; print(*tomllib.load(open("client/pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > "$into/needs"
"$into/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --requirement "$into/needs" 'litellm[proxy]==1.106.2' 'pytest>=9.0'
touch "$into/stamp"
