#!/bin/sh
# Makes the partitions of a disk: DEVICE wipe|keep TABLE LABEL...
# One that has them all is left alone; one that has other partitions is, too, and that is an error.
device=$1 how=$2 table=$3
shift 3
if [ ! -b "$device" ]; then
	echo "slipway: $device is not a disk" >&2
	exit 1
fi
if [ "$how" = keep ] && sfdisk --dump "$device" 2>/dev/null | grep -q '^/'; then
	for label; do
		if ! sfdisk --dump "$device" | grep -qF "name=\"$label\""; then
			echo "slipway: $device has partitions, and none of them is $label" >&2
			exit 1
		fi
	done
	exit 0
fi
wipefs --all --force "$device" || exit 1
printf '%s' "$table" | sfdisk --wipe always --wipe-partitions always "$device" || exit 1
udevadm settle --timeout=30
