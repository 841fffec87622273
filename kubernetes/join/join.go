// Package join owns how hosts join Kubernetes clusters. It mints a bootstrap token for one host, one node name and
// one boot. It approves the one certificate request that is made with the token, and then deletes the token. It never
// decides what a host becomes, and never uses a credential of a cluster for anything else.
//
// A token is minted (the Secret may exist), spent (one request is approved), joined (the node has appeared) or
// revoked. The store has each state before the cluster sees its effect. If the process dies at any point, the stored
// state says what is left to do, and repeating it does no harm.
//
// Start reading at Mint, then Decide, which is pure and holds the rules, then Serve. rbac.yaml holds the rights that
// the account in a target's kubeconfig needs.
package join

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Group is the group of every token that Slipway mints. It may ask for certificates and read what kubeadm join reads.
// No approver of Kubernetes grants its requests by itself, and it cannot read kubeadm-certs.
const Group = "system:bootstrappers:slipway:nodes"

// Secrets opens stored secrets by name, and seals the secret halves of tokens. A label binds a sealed text to its
// use: Unseal with another label fails.
type Secrets interface {
	Open(ctx context.Context, name string) ([]byte, error)
	Seal(label string, plain []byte) ([]byte, error)
	Unseal(label string, sealed []byte) ([]byte, error)
}

// Config holds what a Joiner needs. Store and Secrets are required.
type Config struct {
	Store   inventory.Store
	Secrets Secrets
	Rand    io.Reader      // crypto/rand when nil
	Egress  *egress.Policy // which addresses clusters may be at; nil: anywhere
	Now     func() time.Time
	Log     *slog.Logger
	// Alarm receives what an admin should know. It must not block. nil drops it.
	Alarm func(context.Context, Alarm)
	// ServingCerts approves serving certificates of kubelets too, when all names and addresses in them are the host's.
	ServingCerts bool
	// PollFor is how often the joiner checks targets and open tokens; 3 s when 0.
	PollFor time.Duration
}

// Alarm is something about a target that an admin should know.
type Alarm struct {
	Kind    AlarmKind
	Target  string
	Host    inventory.HostID    // "" when it is about the target
	Session inventory.SessionID // "" when it is about the target
	Detail  string              // one line for people
	Hint    string
}

// AlarmKind says what an alarm is about.
type AlarmKind string

// The kinds of alarms.
const (
	AlarmUnreachable AlarmKind = "unreachable" // the target cannot be watched: nobody can join it
	AlarmReachable   AlarmKind = "reachable"   // it is watched again
	AlarmRefused     AlarmKind = "refused"     // a token was used for something that it is not for
)

// Joiner lets hosts join the targets in its store. Many goroutines may call its methods, and one runs Serve.
type Joiner struct {
	cfg   Config
	turns turns
	wake  chan struct{}

	mu       sync.Mutex // never held during a call to a cluster or the store
	clusters map[string]*connection
	doomed   map[string]map[string]bool // target, then token id: Secrets that are still to be deleted
}

// New returns a Joiner.
func New(cfg Config) *Joiner {
	cfg.Rand = cmp.Or(cfg.Rand, rand.Reader)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.PollFor = cmp.Or(cfg.PollFor, 3*time.Second)
	if cfg.Alarm == nil {
		cfg.Alarm = func(context.Context, Alarm) {}
	}
	return &Joiner{
		cfg:      cfg,
		turns:    turns{busy: map[string]chan struct{}{}},
		wake:     make(chan struct{}, 1),
		clusters: map[string]*connection{},
		doomed:   map[string]map[string]bool{},
	}
}

// Wake makes Serve read the targets and their secrets now. Without it Serve sees a change at the next poll.
func (j *Joiner) Wake() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// connect returns the cluster of a target, and keeps it until the kubeconfig changes. It opens no connection. Two
// callers may make one at the same time; the last is kept, and both work.
func (j *Joiner) connect(ctx context.Context, target *inventory.JoinTarget) (*cluster, error) {
	s, err := inventory.Read(ctx, j.cfg.Store, func(tx inventory.Tx) (inventory.Secret, error) {
		return tx.Secrets().Find(target.Kubeconfig)
	})
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	known := j.clusters[target.Name]
	j.mu.Unlock()
	// The version of the secret tells a new kubeconfig, also one that an admin stored under the same name.
	if known != nil && known.secret == s.Name && known.version == s.Version {
		return known.cluster, nil
	}
	plain, err := j.cfg.Secrets.Open(ctx, target.Kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := newCluster(target, plain, j.cfg.Now, j.cfg.Egress)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.clusters[target.Name] = &connection{c, s.Name, s.Version}
	j.mu.Unlock()
	return c, nil
}

// turns lets one caller at a time pass for each key, and none waits for another key.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the key is free again
}

// take waits for the turn of a key, and returns the function that ends the turn. The error is Unavailable when ctx
// ends first.
func (t *turns) take(ctx context.Context, key string) (release func(), err error) {
	for {
		t.mu.Lock()
		// Several may have waited for one key. Each looks again when it is free, and one of them has it.
		done, isBusy := t.busy[key]
		if !isBusy {
			done = make(chan struct{})
			t.busy[key] = done
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				// Before the close: a waiter that wakes up must not find the old channel again.
				delete(t.busy, key)
				t.mu.Unlock()
				close(done)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, inventory.Errorf(inventory.Unavailable, "another request of the same boot is still being answered").WithHint("ask again in a few seconds")
		}
	}
}
