package serve

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/autoinstall"
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kickstart"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/capisecret"
	"slipway.dev/slipway/machineconfig/k3s"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/microk8s"
	"slipway.dev/slipway/machineconfig/none"
	"slipway.dev/slipway/machineconfig/osadapter"
	"slipway.dev/slipway/machineconfig/talos"
	"slipway.dev/slipway/preseed"
	"slipway.dev/slipway/render"
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

// neighbourOf returns the MAC that uses an address on a network of ours, as the kernel's neighbour table has it. A
// machine that has just asked us for something over TCP stands there. It asks for that one entry: a list of them all
// takes milliseconds for a thousand machines.
func neighbourOf(a netip.Addr) (inventory.MAC, bool) {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil || len(routes) == 0 || routes[0].Gw != nil {
		return "", false // behind a router: its MAC says nothing
	}
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	ask := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
	ask.AddData(&netlink.Ndmsg{Family: uint8(family), Index: uint32(routes[0].LinkIndex)})
	ask.AddData(nl.NewRtAttr(netlink.NDA_DST, a.AsSlice()))
	found, err := ask.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	if err != nil || len(found) == 0 {
		return "", false
	}
	n, err := netlink.NeighDeserialize(found[0])
	if err != nil || n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE|netlink.NUD_NOARP) != 0 {
		return "", false
	}
	mac, err := inventory.ParseMAC(n.HardwareAddr.String())
	return mac, err == nil
}
