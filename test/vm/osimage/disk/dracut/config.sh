#!/bin/sh
# Ignition looks for a configuration that came with the system below /usr/lib/ignition.
set -e
mkdir -p /run/slipway-boot /usr/lib/ignition
mount -t ext4 -o ro /dev/disk/by-label/boot /run/slipway-boot
if [ -e /run/slipway-boot/ignition/config.ign ]; then
    cp /run/slipway-boot/ignition/config.ign /usr/lib/ignition/user.ign
fi
umount /run/slipway-boot
