#!/bin/sh
# deps.sh list             the Debian packages that each make target needs, and what for
# deps.sh install TARGET   install those of TARGET that are missing, saying which and why (root, or sudo)
set -eu

# target            package                            why
table() {
	cat <<'TABLE'
build               gcc                                SQLite is C
build               libc6-dev                          SQLite is C
release             gcc-aarch64-linux-gnu              SQLite is C, for arm64, too
release             libc6-dev-arm64-cross              SQLite is C, for arm64, too
release             binutils                           readelf says whether a program is static
lab                 libvirt-daemon-system              runs the virtual rack
lab                 qemu-system-x86                    the machines of the rack
lab                 qemu-utils                         their disks
lab                 ovmf                               UEFI firmware for them
lab                 ipxe                               boot loaders that Slipway serves
lab                 ipxe-qemu                          the PXE ROM of the BIOS machine
lab                 seabios                            BIOS firmware
lab                 iproute2                           the rack's own network namespace
lab                 util-linux                         libvirtd in a mount namespace of its own
lab                 debian-installer-12-netboot-amd64  the Debian kernel and RAM disk they boot
lab                 linux-image-amd64                  the kernel of the agent and of the system that is installed; any kernel that is there will do
lab                 grub-pc-bin                        boot loader of the system that is installed
lab                 grub-efi-amd64-bin                 boot loader of the system that is installed
lab                 grub-common                        makes it
lab                 busybox-static                     the programs of the system that is installed
lab                 dosfstools                         its file system
lab                 mtools                             its files
lab                 fdisk                              its partitions
lab-instances       postgresql                         the database of several servers
test-postgres       postgresql                         the servers that tests start
test-postgres       pgbouncer                          a connection pooler before them
test-patroni        patroni                            makes a standby the primary when that one is gone
test-patroni        etcd-server                        keeps who the primary is
test-patroni        python3-etcd                       lets Patroni ask etcd
test-patroni        util-linux                         nsenter
test-kube           curl                               switches simulated machines
test-kube           iproute2                           network namespaces
test-kube           ipxe                               the boot files that are served
test-net            iproute2                           network namespaces
test-net            ipxe                               the boot files that are served
test-net            isc-dhcp-server                    dhcpd, a DHCP server of others
test-net            isc-dhcp-client                    dhclient, a real DHCP client
test-net            udhcpc                             a real DHCP client
test-net            dhcpcd-base                        a real DHCPv6 client
test-net            ndisc6                             rdisc6, reads router advertisements
test-net            kea-admin                          perfdhcp, a DHCP load
test-net            curl                               a real HTTP client
test-net            tftp-hpa                           a real TFTP client
test-net            atftp                              a real TFTP client
test-net            tcpdump                            shows what was on the wire when a test fails
test-net            strace                             proves that files go from the kernel to the network
test-net            ignition                           a real client of configurations
test-net            dnsmasq-base                       another DHCP server on the network
test-net            isc-dhcp-relay                     a relay agent
test-net            dhcpcd-base                        a DHCP client
test-net            kea-dhcp4-server                   another DHCP server on the network
test-net            systemd                            a DHCP client: systemd-networkd
test-net            util-linux                         mounts of its own
test-net            openipmi                           ipmi_sim, a real IPMI controller
test-net            procps                             names the process that has a port
test-net            shim-signed                        boot files that are served
test-net            grub-efi-amd64-signed              boot files that are served
test-kube           iproute2                           the rack of the walk-throughs in namespaces
test-kube           ipxe                               boot files that are served to it
test-attack         iproute2                           network namespaces
test-attack         ipxe                               the boot files that are served
test-attack         curl                               a real HTTP client
test-judges         ignition                           Ignition's parser and engine
test-judges         libblkid-dev                       the newer engine is C in part
test-judges         pkg-config                         finds libblkid
test-judges         cloud-init                         cloud-init's own reader, schema and network renderers
test-judges         netplan.io                         reads what is meant for Ubuntu
test-judges         systemd                            systemd-analyze verifies units
test-judges         debconf                            reads preseeds
test-judges         shellcheck                         reads generated scripts
test-judges         containerd                         reads its own configuration
test-judges         openssl                            reads generated certificates
test-judges         cpio                               unpacks initrds
test-judges         busybox-static                     a root in which generated scripts run
test-judges         dash                               reads generated scripts
test-judges         gzip                               unpacks initrds
test-judges         iproute2                           a network for systemd-networkd
test-judges         passwd                             makes the users of a test root
test-judges         python3-gi                         asks libnm
test-judges         gir1.2-nm-1.0                      NetworkManager's own reader of key files
test-judges         python3-yaml                       reads what cloud-init wrote
test-judges         udev                               finds disks as installers do
test-judges         btrfs-progs                        file systems with subvolumes
test-judges         nftables                           loads generated firewalls
test-judges         util-linux                         mounts of its own
test-judges         qemu-system-x86                    runs Debian's installer
test-judges         debian-installer-12-netboot-amd64  Debian's installer
test-ui             chromium                           the browser
test-ui             iproute2                           network namespaces
test-ui             ipxe                               boot files that are served
test-ui             curl                               changes what simulated machines are made of
test-ui             postgresql                         the database of two instances
test-ui             zbar-tools                         reads the QR codes of stickers
pictures            chromium                           the browser
pictures            iproute2                           network namespaces
pictures            ipxe                               boot files that are served
pictures            pngquant                           makes pictures small
bench               kea-dhcp4-server                   peer: Kea
bench               postgresql                         the database of pg-claims
bench               kea-admin                          perfdhcp
bench               dnsmasq-base                       peer: dnsmasq
bench               nginx-light                        peer: nginx
bench               tftpd-hpa                          peer: tftpd-hpa
bench               curl                               48 of them fetch at once
bench               qemu-utils                         peer: qemu-img
bench               zstd                               peer: zstd | dd
bench               iproute2                           network namespaces
bench               qemu-system-x86                    one machine to boot
bench               ovmf                               its firmware
bench               grub-efi-amd64-signed              a boot loader for it
bench               ipxe                               boot loaders
TABLE
	lab_for_vm
}

# test-vm needs what lab needs, and a loader for its disks
lab_for_vm() {
	cat <<'TABLE'
test-vm             shim-signed                        Secure Boot
test-vm             qemu-system-arm                    an emulated arm64 board
test-vm             qemu-efi-aarch64                   its UEFI
test-vm             grub-efi-amd64-signed              loader on the test disk
test-vm             mmdebstrap                         makes the systems that are booted, from Debian's packages
test-vm             pxelinux                           a boot loader for BIOS machines
test-vm             syslinux-common                    the rest of it
test-vm             u-boot-qemu                        the firmware of an emulated arm64 board
test-vm             memtest86+                         the memory test of the boot menu
test-vm             sbsigntool                         signs loaders for firmware with keys of the site's own
test-vm             udhcpc                             a DHCP client on a VLAN, under Debian's kernel
test-vm             dnsmasq-base                       another DHCP server on the network
test-vm             cpio                               packs them
test-vm             zstd                               packs them
test-vm             e2fsprogs                          their file systems
test-vm             gdisk                              reads the partition tables that the agent writes
test-vm             xfsprogs                           a file system that the agent places configurations in
test-vm             btrfs-progs                        a file system that the agent places configurations in
test-vm             xz-utils                           packs images
test-vm             openipmi                           ipmi_sim, a real IPMI controller
test-vm             libvirt-clients                    the power switch behind it
TABLE
}

packages() {
	table | awk -v t="$1" '$1 == t || (t == "test-vm" && $1 == "lab") { p = $2; $1 = $2 = ""; sub(/^ +/, ""); print p "\t" $0 }'
}

case "${1:-list}" in
list) table ;;
install)
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	export DEBIAN_FRONTEND=noninteractive
	ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || $sudo apt-get update >&2 # systems are made from these lists, too
	missing=
	while IFS="$(printf '\t')" read -r package why; do
		[ -n "$package" ] || continue
		# A machine with a kernel of its own keeps it; one without, a container, will not be started from ours.
		[ "$package" = linux-image-amd64 ] && ls /boot/vmlinuz-* >/dev/null 2>&1 && continue
		if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed'; then
			echo "needs Debian package $package: $why" >&2
			missing="$missing $package"
		fi
	done <<LIST
$(packages "${2:?target}")
LIST
	[ -n "$missing" ] || exit 0
	export INITRD=No # see above
	# shellcheck disable=SC2086
	$sudo apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
		{ $sudo apt-get update && $sudo apt-get install -y --no-install-recommends $missing; } >&2
	;;
*) sed -n '2,4p' "$0" >&2; exit 2 ;;
esac
