package wire

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// CapabilityField is a part of a configuration.
type CapabilityField struct {
	Path  string `json:"path"`
	About string `json:"about"`
}

// CapabilityColumn is a format, as the target's tool reads it.
type CapabilityColumn struct {
	Format string                    `json:"format"`
	Tool   string                    `json:"tool,omitempty" doc:"Version of what reads it; absent when it is not known"`
	IsRead bool                      `json:"isRead" doc:"The target reads this format"`
	Cells  map[string]CapabilityCell `json:"cells" doc:"By path"`
}

// CapabilityCell is how well a format carries a part of a configuration.
type CapabilityCell struct {
	Support string `json:"support" enum:"lossless,emulated,lossy,unsupported"`
	Note    string `json:"note,omitempty" doc:"How it is emulated, or what is lost and what to use instead"`
}

// CapabilityTable says how well each format carries each part of a configuration to a target.
type CapabilityTable struct {
	Target  string             `json:"target" doc:"The operating system and its release"`
	Fields  []CapabilityField  `json:"fields" doc:"The rows"`
	Formats []CapabilityColumn `json:"formats" doc:"The columns"`
}

// Revision is what a profile or layer was at one time.
type Revision[T any] struct {
	N         int       `json:"n" doc:"Counted from 1; the highest is in force"`
	CreatedAt time.Time `json:"createdAt"`
	Changed   []string  `json:"changed" doc:"Fields in which it differs from the revision before"`
	Body      *T        `json:"body,omitempty" doc:"What it was; left out of lists"`
}

// SecretInput is a secret as it comes in. No answer ever holds the value.
type SecretInput struct {
	Value *string `json:"value,omitempty" writeOnly:"true" doc:"The secret itself, as text; left out, it stays as it is" maxLength:"1048576"`
	About *string `json:"about,omitempty" doc:"What it is for; left out, that stays" maxLength:"255"`
	// Consumers replace those that it has.
	Consumers *inventory.Consumers `json:"consumers,omitempty" doc:"Whom it is for; left out, that stays. Without any, only what an admin has saved may name it"`
}

// SecretUses says what keeps a secret from being deleted.
type SecretUses struct {
	Name   string   `json:"name"`
	UsedBy []string `json:"usedBy" doc:"Profiles, layers, machines, targets and clusters that name it, such as profile web"`
}

// ApplianceInfo is what controllers ask first.
type ApplianceInfo struct {
	Site       string   `json:"site" doc:"The first part of provider ids"`
	Cluster    string   `json:"cluster,omitempty" doc:"UID of the cluster that the token is bound to"`
	Namespaces []string `json:"namespaces,omitempty" doc:"Those whose objects the token speaks for; absent means all"`
	LastEvent  int64    `json:"lastEvent" doc:"Id of the newest event: follow what happens from here"`
}

// Kubeconfig lets its reader into a cluster as an administrator.
type Kubeconfig struct {
	Kubeconfig string    `json:"kubeconfig"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// TargetCheck says whether hosts can join a target.
type TargetCheck struct {
	Target  string              `json:"target"`
	Version string              `json:"version,omitempty" doc:"Of its API server"`
	IsGood  bool                `json:"isGood" doc:"All results are"`
	Results []TargetCheckResult `json:"results" doc:"In the order of the checks"`
}

// ClusterCheck says whether a cluster can be attached.
type ClusterCheck struct {
	Cluster    string              `json:"cluster"`
	Kubernetes string              `json:"kubernetes,omitempty" doc:"Version of its API server"`
	UID        string              `json:"uid,omitempty" doc:"Of its namespace kube-system"`
	IsGood     bool                `json:"isGood" doc:"All results are"`
	Results    []TargetCheckResult `json:"results" doc:"In the order of the checks"`
}

// CheckClusterInput is a cluster that is not attached yet.
type CheckClusterInput struct {
	Name        string                  `json:"name"`
	Kubeconfig  string                  `json:"kubeconfig" writeOnly:"true" doc:"The text itself; it is not kept" maxLength:"1048576"`
	Modes       []inventory.ClusterMode `json:"modes,omitempty"`
	Namespaces  []string                `json:"namespaces,omitempty"`
	WatchFilter string                  `json:"watchFilter,omitempty"`
	TakesOver   bool                    `json:"takesOver,omitempty" doc:"It is the cluster that it says it is, although another certificate authority vouched for that one, or none is known"`
}

// BootstrapData are what a bootstrap provider wrote for one machine.
type BootstrapData struct {
	Value  []byte `json:"value" writeOnly:"true" doc:"In base64. It is kept in memory only, until the machine has fetched its configuration"`
	Format string `json:"format,omitempty" doc:"cloud-config when empty" maxLength:"63"`
	Check  bool   `json:"check,omitempty" doc:"Keep nothing, and only say whether the machine could boot with it"`
}

// BootstrapVerdict says whether a machine can boot with its bootstrap data, and why not.
type BootstrapVerdict struct {
	IsUsable bool `json:"isUsable"`
	contract.BootstrapError
}
