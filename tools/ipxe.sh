#!/bin/sh
# ipxe.sh   fetches iPXE 2.0 of a newer Debian into build/ipxe, for the test of signed iPXE (test/vm).
#
# apt works on folders of its own: neither this machine's sources nor its packages change.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/build/ipxe
[ -f "$out/ipxe.efi" ] && exit
work=$out/work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main" >"$work/sources.list"
apt() {
	apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
		-o Dir::Cache="$work/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root "$@"
}
apt update
cd "$work"
apt download ipxe
for deb in ./*.deb; do
	dpkg-deb -x "$deb" tree
done
cp tree/usr/lib/ipxe/ipxe-amd64.efi "$out/ipxe.efi"
rm -rf "$work"
