#!/bin/sh
# release.sh check VERSION   says whether the tree can become this release: its form, the changelog, the web UI
# release.sh notes VERSION   writes the section of the changelog
# release.sh papers VERSION  makes what needs no compiler: kinds, API description, notes
# release.sh all VERSION     makes the release in build/release/vVERSION (or in $OUT)
#
# Two runs over the same commit make the same bytes, in whatever folder: no file holds a path, a clock or a name of this
# machine. Times are those of the commit, or SOURCE_DATE_EPOCH. Call it by make release, which sets the flags of Go.
set -eu
cd "$(dirname "$0")/.."
what=${1:-} version=${2:-}
tag=v$version
out=${OUT:-build/release/$tag}
archs=${ARCHS:-amd64 arm64}

fail() {
	echo "release: $1" >&2
	[ -z "${2:-}" ] || echo "hint: $2" >&2
	exit 1
}

notes() {
	awk -v want="## $version" '$1 == "##" { p = ($1 " " $2 == want); next } p' CHANGELOG.md | sed '/./,$!d'
}

check() {
	echo "$version" | grep -qE '^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$' ||
		fail "\"$version\" is not a version" 'say make release VERSION=0.1.0, without v'
	[ -n "$(notes)" ] || fail "CHANGELOG.md has no section \"## $version\"" 'RELEASING.md says how it is written'
	[ "$what" = all ] || return 0
	dump=inventory/sqlstore/released/testdata/${version%%-*}.sql # a release candidate has that of its release
	schema=$(ls migrations/sqlite | sed -n 's/^\([0-9]*\)_.*/\1/p' | sort | tail -n 1)
	grep -q "^INSERT INTO goose_db_version VALUES (.*, $schema, " "$dump" 2>/dev/null ||
		fail "$dump is not a database of this schema" 'go test ./inventory/sqlstore/released -dump'
	[ -f ui/dist/index.html ] || fail 'the web UI is not built' 'make ui'
}

# epoch is the time that files of the release have, in seconds.
epoch() {
	if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
		echo "$SOURCE_DATE_EPOCH"
	else
		git log -1 --format=%ct 2>/dev/null || fail 'the time of the commit is not known' 'run in a git checkout, or set SOURCE_DATE_EPOCH'
	fi
}

papers() {
	mkdir -p "$out"
	for f in kubernetes/manifests/crds/*.yaml; do
		cat "$f"
	done >"$out/slipway-$tag-crds.yaml"
	cp web/openapi.yaml "$out/slipway-$tag-openapi.yaml"
	notes >"$out/RELEASE_NOTES.md"
}

# program ARCH NAME FILE builds a static program. SQLite makes slipway a C program in part; the agent has no C in it.
program() {
	flags="-s -w -buildid= -X main.version=$tag"
	if [ "$2" = slipway ]; then
		case $1 in
		"$(go env GOHOSTARCH)") cc=gcc ;;
		arm64) cc=aarch64-linux-gnu-gcc ;;
		amd64) cc=x86_64-linux-gnu-gcc ;;
		*) fail "no C compiler for $1 is known" ;;
		esac
		CGO_ENABLED=1 CC=$cc GOOS=linux GOARCH=$1 go build -ldflags "$flags -linkmode external -extldflags -static" -o "$3" "./cmd/$2"
	else
		CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -ldflags "$flags" -o "$3" "./cmd/$2"
	fi
	! readelf -l "$3" | grep -q INTERP || fail "$3 is not static"
}

# bill writes the parts of a program as a CycloneDX document.
bill() { # ARCH NAME FILE
	set -- "$@" "$out/$2-$tag-linux-$1.cdx.json"
	build/cyclonedx-gomod bin -json -noserial -notimestamp -version "$tag" "$3" 2>/dev/null >"$4" || fail "cyclonedx-gomod cannot read $3"
	if [ "$2" = slipway ]; then # besides Go modules it holds the packages of the web UI, and the C library
		build/sbom -time "$at" -npm ui/dist/licences.json -deb "glibc=$(dpkg-query -W -f '${Version}' libc6-dev)" "$4"
	else
		build/sbom -time "$at" "$4"
	fi
}

tools() {
	for t in github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod ./sbom; do
		(cd tools && CGO_ENABLED=0 go build -o ../build/ "$t")
	done
}

# archive ARCH packs what a server needs: one folder with the program, the agent beside it, and the papers.
archive() {
	name=slipway-$tag-linux-$1
	mkdir "$work/$name"
	mv "$work/slipway" "$work/$name/slipway"
	cp "$out/slipway-agent-$tag-linux-$1" "$work/$name/slipway-agent"
	cp LICENSE CHANGELOG.md README.md "$work/$name"
	chmod 755 "$work/$name" "$work/$name"/slipway*
	chmod 644 "$work/$name"/*.md "$work/$name/LICENSE"
	LC_ALL=C tar -C "$work" --sort=name --format=ustar --mtime="@$at" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
	rm -r "${work:?}/$name"
}

all() {
	at=$(epoch)
	rm -rf "$out" && mkdir -p "$out" build
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	papers
	tools
	for arch in $archs; do
		echo "release: slipway and slipway-agent for linux/$arch" >&2
		program "$arch" slipway-agent "$out/slipway-agent-$tag-linux-$arch"
		bill "$arch" slipway-agent "$out/slipway-agent-$tag-linux-$arch"
		[ -z "${NO_SERVER:-}" ] || continue # a test of the rest
		program "$arch" slipway "$work/slipway"
		bill "$arch" slipway "$work/slipway"
		archive "$arch"
	done
	(cd "$out" && LC_ALL=C sha256sum -- slipway* >SHA256SUMS)
	echo "release: $out" >&2
}

case $what in
notes) check && notes ;;
check) check ;;
papers) check && papers ;;
all) check && all ;;
*) sed -n '2,5p' "$0" >&2; exit 2 ;;
esac
