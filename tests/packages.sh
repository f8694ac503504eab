#!/bin/sh
# Install what the tests need beside Python packages: a browser for pages, PostgreSQL, nginx and curl for the service. Only what is
# missing, from Debian's packages, and only as root or with a sudo that asks for no password. Where that cannot be, the
# tests that need it are skipped, and say so at their end.
set -u

missing=
command -v chromium >/dev/null || missing="$missing chromium fonts-liberation"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing="$missing postgresql"
command -v curl >/dev/null || missing="$missing curl"
command -v openssl >/dev/null || missing="$missing openssl"
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
# For `make nightly` alone, since it is large: what compiles the tables and figures of a report.
[ "${1:-}" != nightly ] || command -v pdflatex >/dev/null ||
    missing="$missing texlive-latex-base texlive-latex-recommended texlive-pictures"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then root=
elif sudo -n true 2>/dev/null; then root="sudo -n"
else root=no; fi
if [ "$root" = no ] || ! command -v apt-get >/dev/null; then
    echo "These packages are missing, and cannot be installed from here:$missing"
    exit 0
fi
echo "Installing:$missing"
# shellcheck disable=SC2086  # lists of words
$root apt-get -qq update
# shellcheck disable=SC2086
$root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $missing >/dev/null ||
    echo "These packages could not be installed:$missing"
