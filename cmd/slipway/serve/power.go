package serve

import (
	"context"
	"crypto/rand"

	"github.com/oklog/ulid/v2"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/bmc/ipmi"
	"slipway.dev/slipway/bmc/libvirt"
	"slipway.dev/slipway/bmc/manual"
	"slipway.dev/slipway/bmc/redfish"
	"slipway.dev/slipway/bmc/webhook"
	"slipway.dev/slipway/bmc/wol"
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/capisecret"
	"slipway.dev/slipway/machineconfig/k3s"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/microk8s"
	"slipway.dev/slipway/machineconfig/none"
	"slipway.dev/slipway/machineconfig/osadapter"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/machineconfig/talos"
)

// Parts are the formats and bootstrappers that exist. A new one is a folder of its own and a line here.
func Parts() render.Parts {
	return render.Parts{
		Provisioners: []machineconfig.Provisioner{
			ignition.New(), cloudinit.New(), autoinstall.New(), kickstart.New(), preseed.New(), talos.NewProvisioner(),
		},
		Bootstrappers: []machineconfig.Bootstrapper{
			kubeadm.New(), k3s.New(), microk8s.New(), talos.New(), capisecret.New(), none.New(),
		},
		Adapt: osadapter.Apply,
	}
}

// newULID draws the ids of machines, claims and operations: in the order in which they were drawn.
func newULID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// drivers are the ways to power a host. A new one is a folder of its own, its name in inventory.BMCDrivers, and a line here.
// bank has the simulated controllers.
func drivers(store inventory.Store, bank *fake.Bank) map[inventory.BMCDriver]bmc.Opener {
	return map[inventory.BMCDriver]bmc.Opener{
		inventory.Redfish: redfish.Open,
		inventory.IPMI:    ipmi.Open,
		inventory.Libvirt: libvirt.Open,
		inventory.WoL:     wol.Opener(wol.Options{}),
		inventory.Webhook: webhook.Open,
		inventory.Manual:  manual.Opener(people{store}),
		inventory.FakeBMC: bank.Open,
	}
}

// openBMC opens the driver that a host's BMC names, which connects only to what the policy allows.
func openBMC(drivers map[inventory.BMCDriver]bmc.Opener, policy *egress.Policy) bmc.Opener {
	return func(t bmc.Target) (bmc.Driver, error) {
		open, ok := drivers[t.Driver]
		if !ok {
			return nil, inventory.Errorf(inventory.Invalid, "%q is not a way to power a host", inventory.Clean(string(t.Driver), 40)).
				WithHint("use one of %v", inventory.BMCDrivers())
		}
		// Set here and not by each caller: no driver can be opened without the policy.
		t.Egress = policy
		return open(t)
	}
}

// people are those who switch machines by hand; the engine asks them with an issue.
type people struct{ store inventory.Store }

// Ask implements manual.Tasks: the operation that the order is part of has opened the issue.
func (p people) Ask(ctx context.Context, t bmc.Target, _ bmc.Action) (inventory.PowerState, error) {
	return p.State(ctx, t.HostID)
}

// State implements manual.Tasks.
func (p people) State(ctx context.Context, host inventory.HostID) (is inventory.PowerState, err error) {
	// The store keeps the word of a person with the BMC. The manual driver reads it there and has no state of its own.
	err = p.store.Read(ctx, func(tx inventory.Tx) error {
		b, err := tx.FindBMC(host)
		is = b.Power
		return err
	})
	return is, err
}
