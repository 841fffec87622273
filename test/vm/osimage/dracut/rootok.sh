#!/bin/sh
# sysroot.mount mounts the root; dracut has none to look for.
# shellcheck disable=SC2034 # dracut reads both
root=slipway rootok=1
