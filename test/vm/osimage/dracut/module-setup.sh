#!/bin/bash
# shellcheck disable=SC2154 # dracut sets what is in lower case
# What a distribution adds to Debian's module of Ignition for a system that lives in RAM: its root, its network, and a
# configuration that lies in the RAM disk.

depends() {
    echo systemd ignition
}

install() {
    local unit
    for unit in root config teardown; do
        inst_simple "$moddir/$unit.service" "$systemdsystemunitdir/slipway-$unit.service"
    done
    inst_simple "$moddir/sysroot.mount" "$systemdsystemunitdir/sysroot.mount"
    inst_simple "$moddir/default.network" /etc/systemd/network/zz-default.network
    inst_script "$moddir/is-live-image" /usr/bin/is-live-image
    inst_script "$moddir/teardown.sh" /usr/sbin/slipway-teardown
    inst_script "$moddir/setfiles" /usr/sbin/setfiles
    inst_hook cmdline 95 "$moddir/rootok.sh"
    inst_multiple cpio mkdir cp ip rm sh

    $SYSTEMCTL -q --root "$initdir" add-requires initrd-root-fs.target sysroot.mount slipway-root.service
    $SYSTEMCTL -q --root "$initdir" add-requires ignition-complete.target slipway-config.service
    $SYSTEMCTL -q --root "$initdir" add-wants initrd.target slipway-teardown.service
    $SYSTEMCTL -q --root "$initdir" enable systemd-networkd.service
}
