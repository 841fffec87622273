package scoped

import (
	"slices"

	"slipway.dev/slipway/inventory"
)

// FindHost finds a host by its name, its id, or one of its MACs in any spelling.
func FindHost(tx interface {
	FindHost(id inventory.HostID) (inventory.Host, error)
	FindHostByName(name string) (inventory.Host, error)
	FindHostByMAC(mac inventory.MAC) (inventory.Host, error)
}, ref string,
) (inventory.Host, error) {
	h, err := tx.FindHostByName(ref)
	if inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHost(inventory.HostID(ref))
	}
	if mac, bad := inventory.ParseMAC(ref); bad == nil && inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHostByMAC(mac)
	}
	if inventory.IsKind(err, inventory.NotFound) {
		return h, inventory.Errorf(inventory.NotFound, "there is no host %q", inventory.Clean(ref, 80)).
			WithHint("name it by its name, id or MAC; slipway host list shows all")
	}
	return h, err
}

// HostsInRack returns the hosts that are placed in a rack.
func HostsInRack(tx interface {
	ListHosts(f inventory.HostFilter, p inventory.Page) ([]inventory.Host, error)
}, r inventory.Rack,
) ([]inventory.Host, error) {
	hosts, err := tx.ListHosts(inventory.HostFilter{Rack: r.Name}, inventory.Page{})
	return slices.DeleteFunc(hosts, func(h inventory.Host) bool { return h.Place.RackID() != r.ID() }), err
}
