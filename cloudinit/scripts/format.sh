#!/bin/sh
# Makes a file system: DEVICE wipe|keep TYPE COMMAND [ARGUMENT]... One of that type is kept, unless it is to be wiped.
device=$1 how=$2 type=$3
shift 3
if [ ! -b "$device" ]; then
	udevadm settle --timeout=30
fi
if [ ! -b "$device" ]; then
	echo "slipway: $device is not a block device" >&2
	exit 1
fi
if [ "$how" = keep ]; then
	found=$(blkid -p -o value -s TYPE "$device")
	if [ "$found" = "$type" ]; then
		exit 0
	fi
	if [ -n "$found" ]; then
		echo "slipway: $device holds $found, and may not be wiped" >&2
		exit 1
	fi
fi
"$@" "$device"
