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
	// Namespaces are those whose objects are looked at; empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// WatchFilter narrows to objects whose label cluster.x-k8s.io/watch-filter has this value; "" for all.
	WatchFilter string `json:"watchFilter,omitempty"`
	// TakesOver is an admin's word that this is the cluster that it says it is, although another certificate authority vouched
	// for that one, or none is known. It counts once.
	TakesOver bool `json:"takesOver,omitempty"`

	// What became of it, which only whoever runs its controllers writes.
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
