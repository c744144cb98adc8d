#!/bin/sh
# Chromium for the tests of the viewer: Debian's package, where it is missing and we may install it.
# Quick where it is there; never fails, because the tests skip with a clear word without it.
set -u
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get install --yes --quiet --no-install-recommends chromium >/dev/null 2>&1 && exit 0
    apt-get update --quiet >/dev/null 2>&1 &&
        apt-get install --yes --quiet --no-install-recommends chromium >/dev/null 2>&1 && exit 0
fi
echo "no Chromium here, and it could not be installed: the tests in a browser will be skipped" >&2
exit 0
