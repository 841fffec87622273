package inventory

import (
	"regexp"
	"slices"
	"time"
)

// Cluster is a Kubernetes cluster that is attached: its custom resources say what is wanted, and show what is. It is the
// cluster where the resources live; the one that machines join is a JoinTarget, and may be the same.
type Cluster struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"` // name of the secret that holds it
	// Modes are the controllers that run for it; empty means all.
	Modes []ClusterMode `json:"modes,omitempty"`
	// Namespaces are those whose objects the controllers watch; empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// WatchFilter narrows to objects whose label cluster.x-k8s.io/watch-filter has this value; "" for all.
	WatchFilter string `json:"watchFilter,omitempty"`
	// TakesOver is an admin's word that this is the cluster that it says it is, although another certificate authority vouched
	// for that one, or none is known. It counts once.
	TakesOver bool `json:"takesOver,omitempty"`

	// What became of it, which only the program that runs its controllers writes.
	State      ClusterState `json:"state"`
	Reason     string       `json:"reason,omitempty"`
	Hint       string       `json:"hint,omitempty"`
	UID        string       `json:"uid,omitempty"`        // of its namespace kube-system: what owners are keyed with
	Kubernetes string       `json:"kubernetes,omitempty"` // version of its API server
	SeenAt     time.Time    `json:"seenAt,omitzero"`      // when it last answered, give or take a minute

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// ClusterMode is a set of controllers.
type ClusterMode string

// The sets of controllers.
const (
	ModeStandalone ClusterMode = "standalone" // MetalHost, MetalPool, MetalMachine, JoinTarget
	ModeCAPI       ClusterMode = "capi"       // Slipway* of the Cluster API; it waits until the cluster has that
)

// ClusterModes returns all sets of controllers.
func ClusterModes() []ClusterMode { return []ClusterMode{ModeStandalone, ModeCAPI} }

// ClusterState is how it is with an attached cluster.
type ClusterState string

// The states of a cluster.
const (
	ClusterAttaching   ClusterState = "attaching"   // being connected to
	ClusterAttached    ClusterState = "attached"    // its controllers run here
	ClusterStandby     ClusterState = "standby"     // another process runs them; this one takes over when that ends
	ClusterUnreachable ClusterState = "unreachable" // it does not answer; tried again all the time
	ClusterFailed      ClusterState = "failed"      // something has to be changed first; tried again now and then
)

// Runs reports whether the controllers of a mode run for the cluster.
func (c *Cluster) Runs(m ClusterMode) bool { return len(c.Modes) == 0 || slices.Contains(c.Modes, m) }

var watchFilterRE = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)

// Validate checks a cluster by itself.
func (c *Cluster) Validate() error {
	if err := checkField("name", "cluster", c.Name); err != nil {
		return err
	}
	if c.Kubeconfig == "" {
		return Errorf(Invalid, "cluster %s names no secret with its kubeconfig", c.Name).
			WithHint("attach it from the file: slipway cluster attach --kubeconfig FILE")
	}
	if err := checkField("kubeconfig", "secret", c.Kubeconfig); err != nil {
		return err
	}
	for i, m := range c.Modes {
		if !slices.Contains(ClusterModes(), m) {
			return Errorf(Invalid, "cluster %s: %q is not a mode", c.Name, Clean(string(m), 40)).WithHint("use %v", ClusterModes())
		}
		if slices.Contains(c.Modes[:i], m) {
			return Errorf(Invalid, "cluster %s: mode %s stands twice", c.Name, m)
		}
	}
	if len(c.Namespaces) > 256 {
		return Errorf(Invalid, "cluster %s: at most 256 namespaces are allowed", c.Name).WithHint("leave them out to look at all")
	}
	for i, n := range c.Namespaces {
		if err := checkField("namespaces", "namespace", n); err != nil {
			return err
		}
		if slices.Contains(c.Namespaces[:i], n) {
			return Errorf(Invalid, "cluster %s: namespace %s stands twice", c.Name, n)
		}
	}
	if !watchFilterRE.MatchString(c.WatchFilter) {
		return Errorf(Invalid, "cluster %s: %q is not the value of a label", c.Name, Clean(c.WatchFilter, 80))
	}
	return nil
}

// FromPeople is in ClusterAccess.TakesFrom for machines that no cluster asked for: people made them, or `slipway apply`.
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
