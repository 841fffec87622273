package rest

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/scoped"
)

// HostRef names a host.
type HostRef struct {
	Host string `path:"host" doc:"Its name, id or one of its MACs" maxLength:"255"`
}

// FindHost finds a host by what people call it: its name, its id, or one of its MACs in any spelling.
func FindHost(tx inventory.Tx, ref string) (inventory.Host, error) { return scoped.FindHost(tx, ref) }

// ByHost narrows a list to a host.
type ByHost struct {
	Host string `query:"host" doc:"Only those of this host: its name, id or one of its MACs" maxLength:"255"`
}

// HostID returns the id of the host named, "" if none is.
func (q ByHost) HostID(tx inventory.Tx) (inventory.HostID, error) {
	if q.Host == "" {
		return "", nil
	}
	h, err := FindHost(tx, q.Host)
	return h.ID, err
}

// NamedHost is how a request names its host.
func (in *HostRef) NamedHost() string { return in.Host }
