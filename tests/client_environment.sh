#!/bin/sh
# Make an environment that has what sidelong-client needs, and pytest, for tests/test_client_package.py. Where there is no
# network that test is skipped, and says so.
set -eu
into=$1

rm -rf "$into"
"${PYTHON:-python3}" -m venv "$into"
"$into/bin/python" -c 'import tomllib; print(*tomllib.load(open("client/pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > "$into/needs"
"$into/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --requirement "$into/needs" 'pytest>=9.0'
touch "$into/stamp"
