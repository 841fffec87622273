#!/bin/sh
# Chromium in the network namespace of the test, if it has one.
[ -n "${SLIPWAY_NETNS:-}" ] || exec /usr/bin/chromium "$@"
exec ip netns exec "$SLIPWAY_NETNS" /usr/bin/chromium "$@"
