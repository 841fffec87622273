#!/bin/sh
# arm64.sh   fetches Debian's kernel and GRUB for arm64 into build/arm64, for the tests on emulated boards (test/vm).
#
# apt works on folders of its own: neither this machine's architectures nor its packages change.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/build/arm64
[ -f "$out/linux" ] && [ -f "$out/grubaa64.efi" ] && exit
work=$out/work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
apt() {
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::lists="$work/lists" \
		-o Dir::Cache="$work/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root "$@"
}
apt update
cd "$work"
kernel=$(apt install --print-uris --no-install-recommends linux-image-arm64 | sed -n 's/.*\/\(linux-image-[0-9][^_]*\)_.*/\1/p' | head -n 1)
apt download grub-efi-arm64-bin "$kernel"
for deb in ./*.deb; do
	dpkg-deb -x "$deb" tree
done
cp tree/usr/lib/grub/arm64-efi/monolithic/grubnetaa64.efi "$out/grubaa64.efi"
cp tree/boot/vmlinuz-* "$out/linux"
rm -rf "$work"
