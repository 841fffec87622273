#!/bin/sh
# The first program of the RAM disk of a system with cloud-init: it mounts the root and goes on there. What dracut does
# in its place takes an emulated processor 20 seconds.
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do
    insmod "/$module"
done </modules

label=cloudimg-rootfs tries=0
until root=$(findfs "LABEL=$label" 2>/dev/null); do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
        echo "no disk has a file system named $label"
        exec sh
    fi
    sleep 0.1
done
mount -t ext4 -o ro "$root" /sysroot
mount --move /dev /sysroot/dev
umount /proc /sys
exec switch_root /sysroot /sbin/init
