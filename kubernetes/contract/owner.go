package contract

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
)

// LocalCluster is in owners where objects of a cluster have its UID: what is wanted without Kubernetes.
const LocalCluster = "local"

// Owner names the object that wants a machine, permanently: an object that is created again under the same name is another
// owner.
type Owner struct{ ClusterUID, Namespace, Kind, Name, UID string }

// String is what inventory.Machine.Owner holds.
func (o Owner) String() string {
	return strings.Join([]string{o.ClusterUID, o.Namespace, o.Kind, o.Name, o.UID}, "/")
}

// ParseOwner reads what String wrote.
func ParseOwner(s string) (Owner, error) {
	p := strings.Split(s, "/")
	if len(p) != 5 {
		return Owner{}, fmt.Errorf("%q is not an owner: cluster/namespace/kind/name/uid", s)
	}
	return Owner{p[0], p[1], p[2], p[3], p[4]}, nil
}

// OwnerOf returns the owner of the machine that an event is about, "" for none.
func OwnerOf(e inventory.Event) string {
	data, _ := e.Data.(map[string]any)
	owner, _ := data["owner"].(string)
	return owner
}

// HiddenClaim stands for a claim that is not shown.
const HiddenClaim inventory.ClaimID = "hidden"

// IsOf reports whether an owner is an object of a cluster.
func IsOf(owner, clusterUID string) bool {
	return clusterUID != "" && strings.HasPrefix(owner, clusterUID+"/")
}

// ClusterOf is the UID of the cluster whose object an owner is; inventory.FromPeople for one of no cluster.
func ClusterOf(owner string) string {
	if o, err := ParseOwner(owner); err == nil {
		return o.ClusterUID
	}
	return inventory.FromPeople
}

// MayTake refuses a takeover of a machine that owner old has by owner next. To know a claim proves nothing: claims are
// shown to many. Objects of one namespace may follow each other. Across clusters, the old owner must have offered the
// machine to the cluster of next. Or an admin must have allowed this cluster to take machines from that one. The namespace
// stays the same, as clusterctl move keeps it. The refusal does not say whose the machine is.
func MayTake(old, next, offeredTo string, access inventory.ClusterAccess) error {
	to, err := ParseOwner(next)
	if err != nil || to.ClusterUID == "" || to.Namespace == "" || to.UID == "" {
		return inventory.Errorf(inventory.Invalid, "%q is not an owner: cluster/namespace/kind/name/uid", inventory.Clean(next, 120))
	}
	from, err := ParseOwner(old)
	isOfCluster := err == nil && from.ClusterUID != inventory.FromPeople
	switch {
	case old == next:
		return nil
	case err == nil && from.ClusterUID == to.ClusterUID && from.Namespace == to.Namespace:
		return nil
	case err == nil && from.ClusterUID == to.ClusterUID:
		return inventory.Errorf(inventory.Forbidden, "the claim is of a machine of another namespace").
			WithHint("claimID and providerID name a machine of the same namespace; leave both out to get another host")
	case isOfCluster && offeredTo != to.ClusterUID && !access.MayTakeFrom(from.ClusterUID):
		return inventory.Errorf(inventory.Forbidden, "the claim is of a machine of another cluster, from which this cluster may not take machines").
			WithHint("offer it there with an annotation whose value is the UID of this cluster: see docs/clusters.md. Or an admin of Slipway grants it: slipway cluster access NAME --take-from CLUSTER. Or leave out claimID and providerID to get another host")
	case isOfCluster && from.Namespace != to.Namespace:
		return inventory.Errorf(inventory.Forbidden, "the claim is of a machine of another namespace of the cluster that it moves from").
			WithHint("a machine that moves between clusters keeps its namespace")
	case !isOfCluster && !access.MayTakeFrom(inventory.FromPeople):
		return inventory.Errorf(inventory.Forbidden, "the claim is of a machine that people made, which this cluster may not take").
			WithHint("an admin of Slipway grants it: slipway cluster access NAME --take-from %s", inventory.FromPeople)
	}
	return nil
}
