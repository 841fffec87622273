// Package checkup gathers what the instances of a database find when they look themselves over. Each instance checks its own machine, the
// leader also checks the site, and every check says which instance it is about. Any instance gathers all of them.
package checkup

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

const (
	machinePath = "/checks/machine"
	sitePath    = "/checks/site"

	// askFor bounds a question to another instance: its check listens for other DHCP servers for some seconds.
	askFor       = 12 * time.Second
	greetFor     = 2 * time.Second
	mostChecks   = 500 // of one instance
	detailAtMost = 1000
)

// Config is what a Checkup needs.
type Config struct {
	Name    string // of this instance; "": there can be no other, and the rest may be nil
	Machine func(context.Context) []doctor.Check
	Site    func(context.Context) []doctor.Check // only the leader can
	Leads   func() bool
	Leader  Leader
	Others  func() (all []duty.Peer, isKnown bool)
	HTTP    *http.Client // asks other instances
}

// Leader is the instance with the engine, as another one reaches it.
type Leader interface {
	// Greet returns why the leader does not answer; nil: it does.
	Greet(ctx context.Context) error
	// Call asks at a path of the link, and reads the answer into answer.
	Call(ctx context.Context, path string, answer any) error
}

// Checkup looks at this instance and asks the others.
type Checkup struct{ cfg Config }

// New returns a Checkup.
func New(cfg Config) *Checkup { return &Checkup{cfg} }

// link is where an instance answers others.
type link interface{ Handle(string, http.Handler) }

// Register lets other instances ask about the machine of this one.
func (c *Checkup) Register(l link) { l.Handle("POST "+machinePath, answer(c.cfg.Machine)) }

// RegisterSite lets other instances ask about the site, once this one is the leader.
func (c *Checkup) RegisterSite(l link) { l.Handle("POST "+sitePath, answer(c.cfg.Site)) }

func answer(fn func(context.Context) []doctor.Check) http.Handler {
	return peer.Handler(func(ctx context.Context, _ struct{}) ([]doctor.Check, error) { return fn(ctx), nil })
}

// Look checks the machine of this instance, then the site, then the machines of the other instances that live. They all work at the same
// time.
func (c *Checkup) Look(ctx context.Context) []doctor.Check {
	if c.cfg.Name == "" {
		return append(c.cfg.Machine(ctx), c.cfg.Site(ctx)...)
	}
	others, _ := c.cfg.Others()
	found := make([][]doctor.Check, len(others))
	var own, site []doctor.Check
	var all sync.WaitGroup
	all.Go(func() { own = named(c.cfg.Machine(ctx), c.cfg.Name, true) })
	all.Go(func() { site = c.site(ctx) })
	for n, p := range others {
		if p.Life == duty.Alive || p.Life == duty.Unknown && p.Run != "" { // of the others the list of instances says how they are
			all.Go(func() { found[n] = named(c.machineOf(ctx, p), p.Name, false) })
		}
	}
	all.Wait()
	return slices.Concat(append([][]doctor.Check{own, site}, found...)...)
}

// site asks the leader about the site, and says how far it is.
func (c *Checkup) site(ctx context.Context) []doctor.Check {
	if c.cfg.Leads() {
		return c.cfg.Site(ctx)
	}
	engine := doctor.Check{
		Name: "engine", Status: doctor.Failed,
		Hint: "another takes it within seconds if it is gone; else open port 8069 between the two machines: slipway instance list",
	}
	greeting, cancel := context.WithTimeout(ctx, greetFor)
	defer cancel()
	began := time.Now()
	if err := c.cfg.Leader.Greet(greeting); err != nil {
		engine.Detail = "the instance with the engine does not answer, and nothing is known of the site: " +
			inventory.Clean(err.Error(), 300)
		return named([]doctor.Check{engine}, c.cfg.Name, true)
	}
	engine.Detail, engine.Hint = "the instance with the engine answers in "+time.Since(began).Round(10*time.Microsecond).String(), ""
	engine.Status = doctor.OK
	asking, stop := context.WithTimeout(ctx, askFor)
	defer stop()
	var said []doctor.Check
	if err := c.cfg.Leader.Call(asking, sitePath, &said); err != nil {
		engine.Status = doctor.Failed
		engine.Detail = "the instance with the engine does not say how the site is: " + inventory.Clean(err.Error(), 300)
		engine.Hint = "look at its log: slipway instance list shows which one it is"
	}
	return append(named([]doctor.Check{engine}, c.cfg.Name, true), clean(said)...)
}

// machineOf asks another instance about its machine.
func (c *Checkup) machineOf(ctx context.Context, p duty.Peer) []doctor.Check {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	err := error(inventory.Errorf(inventory.Unavailable, "it has no link"))
	for _, at := range p.Links {
		var said []doctor.Check
		if said, err = peer.Call[[]doctor.Check](ctx, c.cfg.HTTP, "https://"+at+machinePath, struct{}{}); err == nil {
			return clean(said)
		}
		if !peer.IsNotConnected(err) {
			break
		}
	}
	return []doctor.Check{{
		Name: "self-check", Status: doctor.Warning, Detail: "nobody knows how its machine is: " + inventory.Clean(err.Error(), 300),
		Hint: "on its machine: slipway doctor",
	}}
}

// named says of checks which instance they are about.
func named(all []doctor.Check, instance string, isHere bool) []doctor.Check {
	for n := range all {
		all[n].Instance, all[n].IsHere = instance, isHere
	}
	return all
}

// clean bounds what another instance has said.
func clean(all []doctor.Check) []doctor.Check {
	if more := len(all) - mostChecks; more > 0 {
		all = append(all[:mostChecks:mostChecks], doctor.Check{
			Name: "self-check", Status: doctor.Warning, Detail: "there are more lines than are shown",
		})
	}
	for n := range all {
		k := &all[n]
		k.Name = inventory.Clean(k.Name, 100)
		k.Detail, k.Hint = inventory.Clean(k.Detail, detailAtMost), inventory.Clean(k.Hint, detailAtMost)
		k.Instance, k.IsHere = "", false
		if k.Status != doctor.OK && k.Status != doctor.Failed {
			k.Status = doctor.Warning
		}
	}
	return all
}
