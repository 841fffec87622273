#!/bin/sh
# Chromium in the network namespace of the test.
exec ip netns exec "$SLIPWAY_NETNS" /usr/bin/chromium "$@"
