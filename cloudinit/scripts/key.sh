#!/bin/sh
# Fetches the signing key of a package repository, unless it is there: URL PATH
if [ -s "$2" ]; then
	exit 0
fi
mkdir -p "$(dirname "$2")"
if command -v curl >/dev/null; then
	curl -fsSL --retry 5 --retry-connrefused --connect-timeout 10 -o "$2.new" "$1" || exit 1
elif command -v wget >/dev/null; then
	wget -q -T 30 -t 5 -O "$2.new" "$1" || exit 1
else
	python3 -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=30) as r, open(sys.argv[2], "wb") as f: shutil.copyfileobj(r, f)' "$1" "$2.new" || exit 1
fi
mv "$2.new" "$2"
