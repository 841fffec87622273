package ipmi

import (
	"net"
	"testing"

	bmcsim "github.com/bougou/go-ipmi/pkg/bmc"
	"github.com/bougou/go-ipmi/pkg/hal/mock"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/inventory"
)

func TestDriverConforms(t *testing.T) {
	machine := func(t *testing.T) *bench {
		b := newBench(t, func(b *bmcsim.BMC) { b.HAL().(*mock.HAL).SetConsole(&mock.Console{Conn: &mock.FakeConsoleConn{}}) })
		shelf := &shelf{sdr: [][]byte{fullSensor}}
		b.answers(func(netFn, cmd byte, data []byte) (byte, []byte, bool) {
			if netFn == netChassis && cmd == cmdChassisControl && data[0] == orders[bmc.Shutdown] {
				b.setOn(false) // its operating system listens
				return 0, nil, true
			}
			return shelf.answer(netFn, cmd, data)
		})
		return b
	}
	bmctest.Run(t, bmctest.Case{
		Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
			b := machine(t)
			b.setOn(is == inventory.PowerOn)
			if _, err := b.open(t).Power(t.Context()); err != nil {
				t.Fatal(err)
			}
			return b.open(t)
		},
		Password: canary,
		Boots: []bmc.Boot{
			{Device: bmc.PXE, Mode: inventory.UEFI},
			{Device: bmc.PXE, Mode: inventory.BIOS, IsPersistent: true},
			{Device: bmc.Disk, Mode: inventory.UEFI},
			{Device: bmc.Virtual, Mode: inventory.UEFI},
			{Device: bmc.Setup},
			{Device: bmc.PXE},
		},
		RefusedBoots: []bmc.Boot{{Device: bmc.HTTP}, {Device: bmc.HTTP, URI: "http://10.0.0.1/boot.efi", Mode: inventory.UEFI}},
		Unreachable: func(t *testing.T) bmc.Driver {
			return open(t, bmc.Target{BMC: inventory.BMC{Address: "127.0.0.1:1", Username: user}, Password: canary})
		},
		Silent: func(t *testing.T) bmc.Driver {
			c, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			made, err := Open(bmc.Target{BMC: inventory.BMC{Address: c.LocalAddr().String(), Username: user}, Password: canary})
			if err != nil {
				t.Fatal(err)
			}
			return made
		},
		Unauthorized: func(t *testing.T) bmc.Driver {
			target := machine(t).target()
			target.Password = canary[1:]
			return open(t, target)
		},
	})
}
