#!/bin/busybox sh
# The whole user space of the system that the lab installs: it reads the NoCloud seed on its disk as cloud-init would, so
# far as to take the host name from meta-data and the address for its report from user-data, and reports.
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /seed
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for m in virtio_pci virtio_blk virtio_net vfat; do modprobe "$m"; done

say() { echo "lab-os: $*" >/dev/console; }

seed=
for try in 1 2 3 4 5; do
	for part in /dev/vd??; do # only a seed has these two files in its root folder
		mount -t vfat -o ro "$part" /seed 2>/dev/null || continue
		if [ -f /seed/user-data ] && [ -f /seed/meta-data ]; then
			seed=$part
			break 2
		fi
		umount /seed
	done
	sleep 1
done
if [ -z "$seed" ]; then
	say "there is no seed on the disk"
	exit 1
fi
name=$(sed -n 's/^local-hostname: *"*\([^"]*\)"*$/\1/p' /seed/meta-data)
report=$(sed -n '/path: \/run\/slipway\/report-url$/,/content:/s/^ *content: *"\(.*\)"$/\1/p' /seed/user-data)
umount /seed
hostname "${name:=lab-os}"
say "$name has read its seed on $seed"

cat >/tmp/lease <<'LEASE'
#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr flush dev "$interface"
ip addr add "$ip/$mask" dev "$interface"
for r in $router; do ip route add default via "$r" && break; done
LEASE
chmod 755 /tmp/lease
ip link set lo up
for nic in /sys/class/net/*; do
	nic=${nic##*/}
	[ "$nic" = lo ] && continue
	ip link set "$nic" up
	udhcpc -i "$nic" -n -q -t 10 -T 2 -s /tmp/lease >/tmp/udhcpc 2>&1 || cat /tmp/udhcpc
done

seconds=$(cut -d' ' -f1 /proc/uptime)
detail=$(echo "Linux $(uname -r) runs from $seed's disk as $name after $seconds s of its own" | sed 's/[^A-Za-z0-9._-]/+/g')
for wait in 1 2 4 8 15; do # wget's own -T crashes in Debian's static BusyBox
	if timeout 10 wget -q -O /dev/null "$report?step=up&detail=$detail"; then
		say "$name is up: Linux $(uname -r), seed on $seed, $seconds s after the kernel started"
		exit 0
	fi
	sleep $wait
done
say "cannot reach $report"
