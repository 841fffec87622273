package kickstart

import (
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
)

func userData(t machineconfig.Target, c *machineconfig.Config) ([]byte, machineconfig.Report) {
	return cloudinit.UserData(t, c)
}

func metaData(c *machineconfig.Config) []byte { return cloudinit.MetaData(c) }
