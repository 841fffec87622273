package inventory

import (
	"regexp"
	"slices"
	"time"
)

// FromPeople stands in ClusterAccess.TakesFrom for machines that no cluster asked for: people made them, or `slipway apply`.
const FromPeople = "local"

// ClusterAccess is what an admin lets a Kubernetes cluster do beyond its own machines. It is kept under the cluster's UID,
// so that it outlives detaching, and says something of clusters too whose controllers run inside of them.
type ClusterAccess struct {
	UID string `json:"uid"` // of the cluster's namespace kube-system
	// TakesFrom are the UIDs of the clusters whose machines this one may take over by their claims, and FromPeople.
	TakesFrom []string `json:"takesFrom"`
	// Pools are the pools whose hosts this cluster sees, uses and changes; empty means all.
	Pools []string `json:"pools"`
	// Authority are fingerprints of the keys that the cluster's API server was trusted by when it was last attached: one that
	// says this UID later has to be trusted by one of them. Empty for a cluster that was never attached.
	Authority []string  `json:"authority,omitempty" readOnly:"true"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// clusterUID is what Kubernetes gives as UID. Owners are written with slashes, so there is none in it.
var clusterUID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// IsClusterUID reports whether a text may be the UID of a cluster.
func IsClusterUID(uid string) bool { return clusterUID.MatchString(uid) && uid != FromPeople }

// Validate checks an access by itself.
func (a *ClusterAccess) Validate() error {
	if !clusterUID.MatchString(a.UID) {
		return Errorf(Invalid, "%q is not the UID of a cluster", Clean(a.UID, 80)).WithHint("it is the UID of its namespace kube-system: kubectl get namespace kube-system -o jsonpath={.metadata.uid}")
	}
	if len(a.TakesFrom) > 64 || len(a.Pools) > 64 {
		return Errorf(Invalid, "a cluster takes machines from at most 64 clusters, and uses at most 64 pools")
	}
	for _, from := range a.TakesFrom {
		if !clusterUID.MatchString(from) {
			return Errorf(Invalid, "%q is not a cluster", Clean(from, 80)).WithHint("name an attached cluster (slipway cluster list), the UID of a cluster, or %s for machines that people made", FromPeople)
		}
		if from == a.UID {
			return Errorf(Invalid, "a cluster need not take machines from itself")
		}
	}
	for _, p := range a.Pools {
		if err := checkField("pools", "pool", p); err != nil {
			return err
		}
	}
	return nil
}

// MayTakeFrom reports whether an admin lets this cluster take over machines of another one.
func (a *ClusterAccess) MayTakeFrom(uid string) bool { return slices.Contains(a.TakesFrom, uid) }

// IsZero reports whether nothing is kept.
func (a *ClusterAccess) IsZero() bool {
	return len(a.TakesFrom) == 0 && len(a.Pools) == 0 && len(a.Authority) == 0
}
