package rest

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/scoped"
)

// HostRef names a host.
type HostRef struct {
	Host string `path:"host" doc:"Its name, id or one of its MACs" maxLength:"255"`
}

// FindHost finds a host by what people call it: its name, its id, or one of its MACs in any spelling.
func FindHost(tx inventory.Tx, ref string) (inventory.Host, error) { return scoped.FindHost(tx, ref) }

// ClusterUID returns the UID of an attached cluster, or the text itself when it is a UID.
func ClusterUID(tx inventory.Tx, name string) (string, error) {
	c, err := tx.Clusters().Find(name)
	switch {
	case err == nil && c.UID == "":
		return "", inventory.Errorf(inventory.Conflict, "cluster %s has not answered yet, so its UID is not known", name).
			WithHint("wait until it is attached: slipway cluster show %s", name)
	case err == nil:
		return c.UID, nil
	case inventory.IsKind(err, inventory.NotFound) && strings.Count(name, "-") >= 4 && len(name) == 36:
		return name, nil
	case inventory.IsKind(err, inventory.NotFound):
		return "", inventory.Errorf(inventory.NotFound, "no cluster %s is attached", inventory.Clean(name, 80)).
			WithHint("list them with: slipway cluster list; or name a cluster by its UID: kubectl get namespace kube-system -o jsonpath={.metadata.uid}")
	}
	return "", err
}

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

// ReadHost reads the host that a request names by its name, its id or a MAC.
func (f *Frame) ReadHost(req *Request, ref string) (h inventory.Host, err error) {
	return Read(req, f.Store, func(tx inventory.Tx) (inventory.Host, error) { return FindHost(tx, ref) })
}

// OfHost runs fn on such a host in one snapshot.
func (f *Frame) OfHost(req *Request, ref string, fn func(inventory.Tx, inventory.Host) error) error {
	return f.Store.Read(req, func(tx inventory.Tx) error {
		h, err := FindHost(tx, ref)
		if err != nil {
			return err
		}
		return fn(tx, h)
	})
}
