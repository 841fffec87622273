package redfish

import (
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

func TestEveryDialectPassesTheSuiteOfAllDrivers(t *testing.T) {
	for _, dialect := range redfishtest.Dialects() {
		t.Run(dialect.Name, func(t *testing.T) {
			t.Parallel()
			dialect.POSTs = 0 // TestOrdersWhileTheFirmwareStartsAreUnavailable has them
			run := func(t *testing.T, o redfishtest.Options, change func(*bmc.Target)) bmc.Driver {
				o.Dialect = dialect
				_, to := start(t, o)
				change(&to)
				d, err := open(to)
				ok(t, err)
				d.every = time.Millisecond
				return d
			}
			same := func(*bmc.Target) {}
			c := bmctest.Case{
				Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
					m := &redfishtest.Memory{Powered: is == inventory.PowerOn}
					return run(t, redfishtest.Options{Systems: []redfishtest.System{{Machine: m}}}, same)
				},
				Password: canary,
				Boots: []bmc.Boot{
					{Device: bmc.PXE}, {Device: bmc.PXE, Mode: inventory.UEFI}, {Device: bmc.PXE, IsPersistent: true}, {Device: bmc.Disk}, {Device: bmc.Virtual}, {Device: bmc.Setup},
				},
				RefusedBoots: []bmc.Boot{{Device: bmc.HTTP, Mode: inventory.BIOS}, {Device: bmc.PXE, URI: "http://192.0.2.1/x.efi"}},
				UsesUpBoot:   true,
				MediaURL:     "http://192.0.2.1/image.iso",
				Unauthorized: func(t *testing.T) bmc.Driver {
					return run(t, redfishtest.Options{}, func(to *bmc.Target) { to.Username = "nobody" })
				},
				Missing: func(t *testing.T) bmc.Driver {
					return run(t, redfishtest.Options{}, func(to *bmc.Target) { to.System = "other" })
				},
				Unreachable: func(t *testing.T) bmc.Driver {
					d, err := open(target("https://127.0.0.1:1"))
					ok(t, err)
					return d
				},
				Silent: func(t *testing.T) bmc.Driver {
					s, to := start(t, redfishtest.Options{Dialect: dialect})
					s.Script(redfishtest.Fault{Do: redfishtest.Hang()})
					d, err := open(to)
					ok(t, err)
					return d
				},
			}
			switch dialect.Name {
			case "openbmc", "xcc": // no UefiHttp, and no boot option to take its place
				c.RefusedBoots = append(c.RefusedBoots, bmc.Boot{Device: bmc.HTTP})
			case "idrac8": // by a boot option
				c.Boots = append(c.Boots, bmc.Boot{Device: bmc.HTTP})
				c.RefusedBoots = append(c.RefusedBoots, bmc.Boot{Device: bmc.HTTP, URI: "http://192.0.2.1/x.efi"})
			case "ilo": // cannot change the mode
				c.RefusedBoots = append(c.RefusedBoots, bmc.Boot{Device: bmc.PXE, Mode: inventory.BIOS})
				c.Boots = append(c.Boots, bmc.Boot{Device: bmc.HTTP})
			case "idrac": // has no place for the URI
				c.Boots = append(c.Boots, bmc.Boot{Device: bmc.HTTP}, bmc.Boot{Device: bmc.PXE, Mode: inventory.BIOS})
			default:
				c.Boots = append(c.Boots, bmc.Boot{Device: bmc.HTTP, URI: "http://192.0.2.1/x.efi"}, bmc.Boot{Device: bmc.PXE, Mode: inventory.BIOS})
			}
			bmctest.Run(t, c)
		})
	}
}
