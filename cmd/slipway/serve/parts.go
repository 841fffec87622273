package serve

import (
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/installer/preseed"
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
