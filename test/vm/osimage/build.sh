#!/bin/bash
# build.sh base OUT                 a Debian tree and its kernel
# build.sh KIND OUT BASE            a kernel and RAM disk for a kind, or a disk, from such a tree
#
# Needs root, and apt's lists of Debian. SOURCES holds lines of a sources.list, FILES the folder of our own files.
# OUT is new; it is complete when this ends with 0. Mounts go with this process: it runs in a mount namespace of its own.
set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
umask 022

suite=bookworm
shared=systemd-sysv,udev,dbus,libnss-myhostname,iproute2,kmod,openssh-server,sudo,curl,ca-certificates,tzdata

# What a machine in a test never looks at. Byte code of Python stays: an emulated processor takes long to compile it.
unread=(usr/share/doc usr/share/man usr/share/info usr/share/locale usr/share/i18n usr/share/lintian usr/share/perl
	usr/share/bash-completion usr/lib/x86_64-linux-gnu/gconv usr/lib/apt usr/lib/udev/hwdb.d usr/lib/udev/hwdb.bin
	var/cache/apt var/cache/debconf var/lib/apt var/lib/dpkg/info var/log boot)

# Parts of the kernel that a virtual machine, its RAM disk and its network need.
drivers=(drivers/block drivers/char drivers/firmware drivers/net/bonding drivers/net/dummy.ko drivers/net/net_failover.ko
	drivers/net/virtio_net.ko drivers/virtio crypto lib fs/autofs fs/ext4 fs/fat fs/jbd2 fs/mbcache.ko fs/nls
	fs/overlayfs net/802 net/8021q net/bridge net/core net/ipv6 net/llc net/netfilter)

base() {
	local out=$1 options=()
	for path in doc man info locale lintian; do
		options+=("--dpkgopt=path-exclude=/usr/share/$path/*")
	done
	mmdebstrap --quiet --mode=root --variant=apt --format=directory --skip=cleanup/apt --dpkgopt=force-unsafe-io \
		--aptopt='APT::Install-Recommends "false"' "${options[@]}" --include="$shared" "$suite" "$out/root" <<<"$SOURCES"
	printf '#!/bin/sh\nexit 101\n' >"$out/root/usr/sbin/policy-rc.d" # installed daemons stay off
	chmod 755 "$out/root/usr/sbin/policy-rc.d"

	local package
	package=$(chroot "$out/root" apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
	(cd "$out/root/tmp" && chroot "$out/root" sh -c "cd /tmp && apt-get download -q -o APT::Sandbox::User=root $package")
	dpkg-deb --extract "$out"/root/tmp/linux-image-*.deb "$out/linux"
	rm "$out"/root/tmp/linux-image-*.deb
}

# tree ROOT BASE PACKAGE... makes a tree from the base, with more packages in it and a part of the kernel's modules.
tree() {
	local root=$1 linux=$2/linux
	cp -a "$2/root" "$root"
	shift 2
	mount -t proc proc "$root/proc"
	mount -t tmpfs none "$root/dev"
	for node in null zero random urandom; do
		touch "$root/dev/$node"
		mount --bind "/dev/$node" "$root/dev/$node"
	done
	ln -s /proc/self/fd "$root/dev/fd"
	if [ $# -gt 0 ]; then
		chroot "$root" apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@"
	fi
	version=$(ls "$linux/lib/modules")
	local modules=$root/usr/lib/modules/$version
	mkdir -p "$modules"
	(
		cd "$linux/lib/modules/$version"
		cp modules.order modules.builtin modules.builtin.modinfo "$modules/"
		for path in "${drivers[@]}"; do
			[ ! -e "kernel/$path" ] || cp -a --parents "kernel/$path" "$modules/"
		done
	)
	chroot "$root" depmod "$version"
}

# finish ROOT takes out what is not needed at run time, and what makes one machine of it.
finish() {
	local root=$1
	umount --recursive "$root/dev" "$root/proc"
	(cd "$root" && rm -rf "${unread[@]}" usr/lib/x86_64-linux-gnu/libperl.so* etc/ssh/ssh_host_* usr/sbin/policy-rc.d)
	mkdir -p "$root/var/log"
	rm -f "$root/etc/hostname" "$root/etc/resolv.conf" "$root/etc/machine-id" "$root/var/lib/dbus/machine-id"
	printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
	chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer \
		systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-pstore.service
	chroot "$root" systemctl --quiet mask serial-getty@.service # a login prompt hangs up who writes to the console
	chroot "$root" systemctl --quiet enable systemd-networkd.service
}

# archive ROOT writes a tree as a RAM disk.
archive() { (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc --reproducible); }

# A cloud-init system is one RAM disk: what a second one brings lies in the same tree.
cloud-init() {
	local out=$1 base=$2
	tree "$out/root" "$base" cloud-init netplan.io
	finish "$out/root"
	: >"$out/root/etc/machine-id"
	cp "$FILES/cloud.cfg" "$out/root/etc/cloud/cloud.cfg.d/99_image.cfg"
	ln -s sbin/init "$out/root/init"
	archive "$out/root" | zstd -q -T0 -3 >"$out/initrd"
	odd "$out/initrd"
	cp "$base"/linux/boot/vmlinuz-* "$out/kernel"
	rm -rf "$out/root"
}

# odd FILE makes a file's length odd, with zeros, which the kernel skips: UEFI puts one RAM disk right behind the other, so
# the next one begins where no plain archive may.
odd() { truncate -s "$(($(stat -c %s "$1") / 2 * 2 + 3))" "$1"; }

# An Ignition system is a RAM disk made by dracut with Debian's module of Ignition, and in it an archive of the system
# that Ignition prepares. (A squashfs below an overlay makes an emulated processor copy for half a minute.)
ignition() {
	local out=$1 base=$2 root=$1/root tools=$1/tools
	tree "$root" "$base"
	finish "$root"
	for-ignition "$root"

	tree "$tools" "$base" dracut-core dracut-network ignition zstd
	mount -t sysfs -o ro sysfs "$tools/sys"
	dracut-module "$tools" 98slipway-root "$FILES"/dracut/*
	chroot "$tools" dracut --quiet --force --no-hostonly --no-early-microcode --kver "$version" --tmpdir /tmp \
		--modules "base systemd systemd-initrd systemd-networkd dracut-systemd kernel-modules udev-rules fs-lib ignition slipway-root" \
		--drivers "virtio_net virtio_pci virtio_blk virtio_rng" --no-compress /initrd
	archive "$root" >"$tools/root.cpio"
	(cd "$tools" && cat initrd && echo root.cpio | cpio --quiet -o -H newc) | zstd -q -T0 -3 >"$out/initrd"
	odd "$out/initrd"
	cp "$base"/linux/boot/vmlinuz-* "$out/kernel"
	umount --recursive "$tools/dev" "$tools/proc" "$tools/sys"
	rm -rf "$root" "$tools"
}

# for-ignition ROOT makes a tree one that Ignition prepares on its first boot.
for-ignition() {
	local root=$1
	echo uninitialized >"$root/etc/machine-id" # the first boot: systemd reads presets, which is how Ignition enables units
	mkdir -p "$root/etc/selinux"
	printf 'SELINUX=disabled\nSELINUXTYPE=none\n' >"$root/etc/selinux/config" # Debian's Ignition fails without
	cp "$FILES/dracut/default.network" "$root/usr/lib/systemd/network/zz-default.network"
	install -D -m 644 "$FILES/ssh-keys.conf" "$root/usr/lib/systemd/system/ssh.service.d/keys.conf"
	install -D -m 644 "$FILES/image.preset" "$root/usr/lib/systemd/system-preset/80-image.preset"
}

# dracut-module TOOLS NAME FILE... gives dracut a module.
dracut-module() {
	local folder=$1/usr/lib/dracut/modules.d/$2
	mkdir -p "$folder"
	shift 2
	cp "$@" "$folder/"
	(cd "$folder" && grep -lZ '^#!' -- * | xargs -0 chmod 755)
}

# shellcheck source=disk/disk.sh
. "$FILES/disk/disk.sh"
"$@"
