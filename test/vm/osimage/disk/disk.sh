# shellcheck shell=bash disable=SC2154 # build.sh sets version
# disk.sh makes systems on disks; build.sh reads it. Everything that writes a disk is of the same Debian as the system on
# it: a file system or partition table made by a newer one might be more than its loader can read.

# More packages for such a tools tree, and parts of the kernel for what the system on a disk may find itself on.
diskers=(gdisk dosfstools mtools e2fsprogs grub-pc-bin grub-efi-amd64-bin grub-common)
disk_drivers=(drivers/net/ethernet/intel drivers/scsi drivers/nvme fs/isofs drivers/cdrom)

# Sizes in MiB. The loader for BIOS lies between the partition table and the EFI system partition.
bios_mib=1 esp_mib=32 boot_mib=96
readonly bios_mib esp_mib boot_mib

disk-cloud-init() {
	local out=$1 base=$2 root=$1/root tools=$1/tools
	drivers+=("${disk_drivers[@]}")
	tree "$root" "$base" cloud-init netplan.io cloud-guest-utils fdisk e2fsprogs
	finish "$root"
	: >"$root/etc/machine-id"
	cp "$FILES/disk/cloud.cfg" "$root/etc/cloud/cloud.cfg.d/99_image.cfg"
	printf 'LABEL=cloudimg-rootfs / ext4 errors=remount-ro 0 1\n' >"$root/etc/fstab"

	tree "$tools" "$base" busybox-static "${diskers[@]}"
	small-initrd "$tools" >"$tools/initrd"
	mkdir -p "$root/boot/grub"
	cp "$base"/linux/boot/vmlinuz-* "$root/boot/vmlinuz"
	cp "$tools/initrd" "$root/boot/initrd.img"
	menu /boot "root=LABEL=cloudimg-rootfs ro" >"$root/boot/grub/grub.cfg"

	table "$out" "$tools" 1280 1 "Linux root" cloudimg-rootfs
	fill "$tools" 1 cloudimg-rootfs "$root"
	loaders "$tools" cloudimg-rootfs /boot/grub
	pack "$out" "$tools" "$root"
}

disk-ignition() {
	local out=$1 base=$2 root=$1/root tools=$1/tools boot=$1/boot
	drivers+=("${disk_drivers[@]}")
	tree "$root" "$base" e2fsprogs
	finish "$root"
	for-ignition "$root"
	printf 'LABEL=root / ext4 errors=remount-ro 0 1\nLABEL=boot /boot ext4 nodev,nosuid 0 2\n' >"$root/etc/fstab"
	install -m 644 "$FILES/disk/dracut/first-boot-done.service" "$root/usr/lib/systemd/system/"
	printf 'enable first-boot-done.service\n' >"$root/usr/lib/systemd/system-preset/80-first-boot.preset"

	tree "$tools" "$base" dracut-core dracut-network ignition zstd "${diskers[@]}"
	mount -t sysfs -o ro sysfs "$tools/sys"
	dracut-module "$tools" 98slipway-disk "$FILES"/dracut/{default.network,setfiles,teardown.service,teardown.sh} "$FILES"/disk/dracut/*
	chroot "$tools" dracut --quiet --force --no-hostonly --no-early-microcode --kver "$version" --tmpdir /tmp \
		--modules "base systemd systemd-initrd systemd-networkd dracut-systemd kernel-modules udev-rules fs-lib rootfs-block ignition slipway-disk" \
		--force-drivers "$disk_modules" --zstd /initrd
	mkdir -p "$boot/grub" "$boot/ignition" "$root/boot"
	cp "$base"/linux/boot/vmlinuz-* "$boot/vmlinuz"
	cp "$tools/initrd" "$boot/initrd.img"
	: >"$boot/ignition.firstboot"
	menu "" "root=LABEL=root rw ignition.platform.id=metal" >"$boot/grub/grub.cfg"

	table "$out" "$tools" 1152 4 "Linux root" root
	fill "$tools" 3 boot "$boot"
	fill "$tools" 4 root "$root"
	loaders "$tools" boot /grub
	umount "$tools/sys"
	pack "$out" "$tools" "$root" "$boot"
}

# Modules without which a disk or a network port is not seen.
disk_modules="virtio_pci virtio_blk virtio_net virtio_scsi virtio_rng sd_mod"

# small-initrd TOOLS writes a RAM disk that knows how to mount the root of a system with cloud-init, and nothing else.
small-initrd() {
	local tools=$1 small=$1/small module file
	mkdir -p "$small"/{bin,dev,proc,sys,sysroot}
	for module in $disk_modules; do
		chroot "$tools" modprobe --set-version "$version" --show-depends "$module"
	done | sed -n 's/^insmod \/\([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$small/modules"
	while read -r file; do
		install -D -m 644 "$tools/$file" "$small/$file"
	done <"$small/modules"
	cp "$tools/bin/busybox" "$small/bin/"
	chroot "$small" /bin/busybox --install -s /bin
	install -m 755 "$FILES/disk/small-init.sh" "$small/init"
	archive "$small" | zstd -q
}

# menu FOLDER ARGS writes GRUB's configuration. A file ignition.firstboot beside the kernel is what makes a boot the first.
menu() {
	cat <<-GRUB
		set timeout=0
		if [ -f $1/ignition.firstboot ]; then set first=ignition.firstboot; fi
		linux $1/vmlinuz $2 \$first console=tty0 console=ttyS0,115200 quiet
		initrd $1/initrd.img
		boot
	GRUB
}

# table OUT TOOLS MIB ROOT NAME LABEL makes an empty disk, which the tools find as /out/raw. With ROOT 4 there is a third
# partition for the kernel. The root is the last on the disk, so that it can grow.
table() {
	local out=$1 tools=$2 size=$3 root=$4 name=$5 bios=14 esp=15 parts
	[ "$root" = 1 ] || bios=1 esp=2
	truncate -s "${size}M" "$out/raw"
	mkdir "$tools/out"
	mount --bind "$out" "$tools/out"
	parts=(-n "$bios:1M:+${bios_mib}M" -t "$bios:ef02" -c "$bios:BIOS boot" -n "$esp:0:+${esp_mib}M" -t "$esp:ef00" -c "$esp:EFI system")
	[ "$root" = 1 ] || parts+=(-n "3:0:+${boot_mib}M" -t 3:8300 -c 3:boot)
	chroot "$tools" sgdisk --clear "${parts[@]}" -n "$root:0:0" -t "$root:8304" -c "$root:$name" /out/raw
	bios_part=$bios esp_part=$esp
}

# sectors TOOLS PART says where a partition begins and how long it is, in sectors of 512 bytes.
sectors() {
	chroot "$1" sgdisk -i "$2" /out/raw | awk '/^First sector/ {first = $3} /^Partition size/ {print first, $3}'
}

# fill TOOLS PART LABEL FOLDER makes an ext4 file system in a partition with what is in a folder.
fill() {
	local tools=$1 part=$2 label=$3 first count
	read -r first count < <(sectors "$tools" "$part")
	mkdir -p "$tools/mnt"
	mount --bind "$4" "$tools/mnt"
	chroot "$tools" mke2fs -q -F -t ext4 -L "$label" -m 1 -d /mnt -E "offset=$((first * 512)),lazy_itable_init=0" \
		/out/raw "$((count / 2))k"
	umount "$tools/mnt"
}

# loaders TOOLS LABEL FOLDER puts GRUB on the disk for BIOS and for UEFI, at the path that firmware tries unasked. Its
# configuration is in a folder of the file system with that label. All of GRUB that is needed is in its two images.
loaders() {
	local tools=$1 first count parts=(part_gpt ext2 search search_label normal linux test configfile)
	# shellcheck disable=SC2016 # GRUB has variables, too
	printf 'search --label %s --set root\nset prefix=($root)%s\n' "$2" "$3" >"$tools/early.cfg"
	chroot "$tools" grub-mkimage -O i386-pc -o /core.img -p "$3" -c /early.cfg biosdisk "${parts[@]}"
	chroot "$tools" grub-mkimage -O x86_64-efi -o /grub.efi -p "$3" -c /early.cfg fat "${parts[@]}"

	# What grub-bios-setup does, without a device: the boot sector is told where the core lies (at byte 0x5c), and the core's
	# first sector where its rest is (12 bytes before its end).
	read -r first count < <(sectors "$tools" "$bios_part")
	[ "$(stat -c %s "$tools/core.img")" -le $((count * 512)) ]
	poke "$tools/out/raw" 0 440 "$tools/usr/lib/grub/i386-pc/boot.img"
	quad "$first" | poke "$tools/out/raw" $((0x5c)) 8 /dev/stdin
	poke "$tools/out/raw" $((first * 512)) "$(stat -c %s "$tools/core.img")" "$tools/core.img"
	quad $((first + 1)) | poke "$tools/out/raw" $((first * 512 + 0x1f4)) 8 /dev/stdin

	read -r first count < <(sectors "$tools" "$esp_part")
	chroot "$tools" mkfs.fat -F 16 -n UEFI --offset "$first" /out/raw $((count / 2)) >/dev/null
	chroot "$tools" mmd -i "/out/raw@@$((first * 512))" ::EFI ::EFI/BOOT
	chroot "$tools" mcopy -i "/out/raw@@$((first * 512))" /grub.efi ::EFI/BOOT/BOOTX64.EFI
}

# poke DISK OFFSET COUNT FILE writes the first bytes of a file to a place on a disk.
poke() { head -c "$3" "$4" | dd of="$1" bs=64k seek="$2" oflag=seek_bytes conv=notrunc status=none; }

# quad N writes a number as eight bytes, the lowest first.
quad() {
	local n=$1
	for _ in 1 2 3 4 5 6 7 8; do
		# shellcheck disable=SC2059 # the format is the byte
		printf "\\x$(printf %02x $((n & 255)))"
		n=$((n >> 8))
	done
}

# pack OUT TOOLS FOLDER... leaves the disk and its packed form.
pack() {
	local out=$1 tools=$2
	shift
	umount --recursive "$tools/dev" "$tools/proc" "$tools/out"
	rm -rf "$@"
	fallocate --dig-holes "$out/raw"
	zstd -q -T0 -3 "$out/raw" -o "$out/raw.zst"
}
