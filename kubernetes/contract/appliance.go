// Package contract owns what the controllers of custom resources may ask of the appliance, and what it answers. Package
// backend answers: with the engine of this process, over the REST API, or as one cluster may use it. The controllers are in
// standalone and clusterapi, and the kinds in v1alpha1 and infra/v1alpha1.
//
// Nothing here allocates a host, boots or wipes anything: every effect goes through an Appliance.
package contract

import (
	"context"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Appliance is what controllers may ask. All calls are safe to repeat. Errors are *inventory.Error.
type Appliance interface {
	Machines
	Hosts
	Nouns

	// Watch calls fn with the zero Event once the stream stands, then with every event from then on, in order, until ctx
	// ends or the stream breaks or has a hole, which is its error. The caller looks at everything at the zero Event, and
	// watches again after an error. fn is quick.
	Watch(ctx context.Context, fn func(inventory.Event)) error
	// Site is the first part of provider ids.
	Site() string
}

// Machines is what becomes of what people want.
type Machines interface {
	// FindMachine returns the machine of an owner (Owner.String), NotFound when there is none. ListMachines returns
	// those of all owners that begin with prefix.
	FindMachine(ctx context.Context, owner string) (View, error)
	ListMachines(ctx context.Context, prefix string) ([]View, error)
	// FindClaim returns the machine that holds a claim.
	FindClaim(ctx context.Context, id inventory.ClaimID) (View, error)
	// Takeable returns the machine that holds a claim when HandOver would give it to owner. It is Forbidden when it would
	// not, which is told in the timeline: to know a claim proves nothing.
	Takeable(ctx context.Context, id inventory.ClaimID, owner string) (View, error)

	// CreateMachine is idempotent by Owner. A Conflict means that another machine has the name.
	CreateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error)
	// UpdateMachine stores what is wanted of a machine (profile, config, hooks, drain, ...); what became of it stays. It
	// is a Conflict when m.Version is not the stored one. Hooks that are left out are acknowledged.
	UpdateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error)
	DeleteMachine(ctx context.Context, name string, force bool) (inventory.Machine, error)
	AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error)
	// HoldHook says why a hook is not acknowledged yet. The same reason again changes nothing.
	HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error)
	Reinstall(ctx context.Context, name string) (inventory.Machine, error)
	// Remediate tries the steps power-cycle, reinstall, replace in the given order.
	Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error)
	RetryMachine(ctx context.Context, name string) (inventory.Machine, error)
	// Offer lets the objects of a cluster take over the machine of an owner, because the owner says so; "" takes that back.
	Offer(ctx context.Context, owner, cluster string) error
	// HandOver makes owner the owner of the machine that holds a claim: its old owner was made again, or moved to another
	// cluster. It is Forbidden unless MayTake lets it. Nothing happens on the host.
	HandOver(ctx context.Context, id inventory.ClaimID, owner string) (inventory.Machine, error)

	// GiveBootstrap hands over the bootstrap data of a machine whose BootstrapFrom is set, when an event of kind
	// inventory.EventBootstrapWanted asks for it. It is kept in memory only, until the machine has fetched its
	// configuration. With check nothing is kept: the error says whether the machine could boot with it, and
	// BootstrapReason(err) why not.
	GiveBootstrap(ctx context.Context, name string, data Bootstrap, check bool) error
}

// Bootstrap is what a bootstrap provider wrote for one machine. It holds secrets: it is never logged or stored.
type Bootstrap struct {
	Value  []byte `json:"value"`
	Format string `json:"format,omitempty"` // cloud-config when empty
}

// View is a machine with all that tells how far it is, read in one snapshot.
type View struct {
	Machine    inventory.Machine      `json:"machine"`
	Host       *inventory.Host        `json:"host,omitempty"`       // nil while it has none
	Claim      *inventory.Claim       `json:"claim,omitempty"`      // nil while it has none
	ProviderID string                 `json:"providerID,omitempty"` // of the claim, "" without one
	Operation  *inventory.Operation   `json:"operation,omitempty"`  // what is being done with the host, nil for nothing
	Session    *inventory.BootSession `json:"session,omitempty"`    // the latest boot of the host since the claim, nil for none
	Image      string                 `json:"image,omitempty"`      // that the profile installs now
	Addresses  []string               `json:"addresses,omitempty"`  // of the host, from leases and its configuration; those of the boot first
	Delivered  bool                   `json:"delivered"`            // the installed system of this claim has fetched its configuration
	IsUp       bool                   `json:"isUp"`                 // it has reported up, or it is taken as running because it reports nothing
	// IsUnseen says that the installed system has given no sign of life: it has not reported up, and one that reports nothing
	// has neither booted by the network nor asked for an address since it was written.
	IsUnseen bool `json:"isUnseen,omitempty"`
	// JoinFailure is why the latest installation under way did not become a node, with the end of the log; "" for nothing.
	JoinFailure string                `json:"joinFailure,omitempty"`
	Rejected    []Rejection           `json:"rejected,omitempty"` // why hosts were not taken, most frequent first; while it has none
	Code        string                `json:"code,omitempty"`     // sums Rejected up: see package placement
	Drain       *inventory.DrainState `json:"drain,omitempty"`    // of the node that Operation empties, nil for none
	Issues      []inventory.Issue     `json:"issues,omitempty"`   // open ones of the host, while Operation is there
}

// Rejection counts the hosts that one cause keeps from a machine.
type Rejection struct {
	Cause string `json:"cause"`
	N     int    `json:"n"`
}

// Hosts is what can be done with hosts.
type Hosts interface {
	FindHost(ctx context.Context, id inventory.HostID) (HostView, error)
	// EachHost calls fn with every host, ordered by name, until fn fails.
	EachHost(ctx context.Context, fn func(HostView) error) error
	// DeclareHost creates a host that has not been seen yet, from its MACs, or returns the one that has one of them.
	DeclareHost(ctx context.Context, h inventory.Host) (inventory.Host, error)
	// UpdateHost stores what people say of a host: labels, place, taints, cordon, root disk. A Conflict when h.Version is
	// not the stored one.
	UpdateHost(ctx context.Context, h inventory.Host) (inventory.Host, error)
	Accept(ctx context.Context, id inventory.HostID) error
	Maintain(ctx context.Context, id inventory.HostID, on bool) error
	Protect(ctx context.Context, id inventory.HostID, on bool) error
	SaveBMC(ctx context.Context, b inventory.BMC, password string) error
	Power(ctx context.Context, id inventory.HostID, a bmc.Action) error
}

// HostView is a host with what it is made of.
type HostView struct {
	Host       inventory.Host        `json:"host"`
	Inspection *inventory.Inspection `json:"inspection,omitempty"` // the newest, nil for none
	BMC        *inventory.BMC        `json:"bmc,omitempty"`        // nil for none
	Machine    *inventory.Machine    `json:"machine,omitempty"`    // that has claimed it, nil for none
	Addresses  []string              `json:"addresses,omitempty"`
	Issues     []inventory.Issue     `json:"issues,omitempty"` // that are open
}

// Nouns are things that are stored under a name for an owner. Saving one that is there under another owner is a
// Conflict; deleting what is not there is no error.
type Nouns interface {
	SavePool(ctx context.Context, p inventory.Pool) error
	DeletePool(ctx context.Context, name, owner string) error
	CountPool(ctx context.Context, name string) (PoolCount, error)
	// ListPools returns all pools, ordered by name.
	ListPools(ctx context.Context) ([]inventory.Pool, error)
	SaveTarget(ctx context.Context, t inventory.JoinTarget) error
	FindTarget(ctx context.Context, name string) (inventory.JoinTarget, error)
	DeleteTarget(ctx context.Context, name, owner string) error
	// SaveSecret stores a value, sealed.
	SaveSecret(ctx context.Context, name, owner string, value []byte) error
	DeleteSecret(ctx context.Context, name, owner string) error
	// InitHolder returns the machine that holds the turn to be the first control plane of a target, "" for none.
	InitHolder(ctx context.Context, target string) (machine string, err error)
	FindProfile(ctx context.Context, name string) (inventory.Profile, error)
	FindImage(ctx context.Context, name string) (inventory.Image, error)
	// ClusterAccess returns what an admin lets a cluster do, by its UID.
	ClusterAccess(ctx context.Context, uid string) (inventory.ClusterAccess, error)
}

// PoolCount counts the hosts of a pool.
type PoolCount struct {
	Total     int `json:"total"`
	Available int `json:"available"`
	Claimed   int `json:"claimed"`
	Cleaning  int `json:"cleaning"`
	Failed    int `json:"failed"`
}
