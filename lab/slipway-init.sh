#!/bin/sh
# The first process of a lab machine: Debian's own kernel and RAM disk, this script instead of the installer. It brings
# the network up, tells Slipway that the machine has arrived, and stays.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
for m in virtio_pci virtio_net e1000 e1000e 8139cp; do modprobe -q "$m"; done

report= name=
for word in $(cat /proc/cmdline); do
	case $word in
	slipway.report=*) report=${word#*=} ;;
	slipway.name=*) name=${word#*=} ;;
	esac
done
hostname "${name:=lab}"

tell() { # step, detail
	detail=$(echo "$2" | sed 's/[^A-Za-z0-9._-]/+/g')
	for wait in 1 2 4 8 15; do
		wget -q -T 10 -t 1 -O /dev/null "$report?step=$1&detail=$detail" && return 0
		sleep $wait
	done
	echo "slipway-lab: cannot reach $report"
	return 1
}

up=
for nic in /sys/class/net/*; do
	nic=${nic##*/}
	[ "$nic" = lo ] && continue
	ip link set "$nic" up
	udhcpc -i "$nic" -n -q -t 10 -T 2 -s /etc/udhcpc/default.script >/tmp/udhcpc 2>&1 && up="$up $nic" || cat /tmp/udhcpc
done
seconds=$(cut -d' ' -f1 /proc/uptime)
tell up "Linux $(uname -r) runs on $name after $seconds s of its own"

echo
echo "slipway-lab: $name is up: Linux $(uname -r), network on$up, $seconds s after the kernel started"
echo "slipway-lab: this machine has nothing to do; switch it off when you like"
while :; do sleep 3600; done
