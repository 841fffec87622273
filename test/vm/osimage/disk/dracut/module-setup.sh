#!/bin/bash
# shellcheck disable=SC2154 # dracut sets what is in lower case
# What a distribution adds to Debian's module of Ignition for a system on a disk: its network, and a configuration that
# lies in the partition of the kernel.

depends() {
    echo systemd ignition
}

install() {
    inst_simple "$moddir/config.service" "$systemdsystemunitdir/slipway-config.service"
    inst_simple "$moddir/teardown.service" "$systemdsystemunitdir/slipway-teardown.service"
    inst_simple "$moddir/first-boot.conf" "$systemdsystemunitdir/systemd-networkd.service.d/first-boot.conf"
    inst_simple "$moddir/default.network" /etc/systemd/network/zz-default.network
    inst_script "$moddir/config.sh" /usr/sbin/slipway-config
    inst_script "$moddir/teardown.sh" /usr/sbin/slipway-teardown
    inst_script "$moddir/setfiles" /usr/sbin/setfiles
    inst_multiple mkdir cp ip mount umount sh

    $SYSTEMCTL -q --root "$initdir" add-requires ignition-complete.target slipway-config.service
    $SYSTEMCTL -q --root "$initdir" add-wants initrd.target slipway-teardown.service
    $SYSTEMCTL -q --root "$initdir" enable systemd-networkd.service
}
