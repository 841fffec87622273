package lookup

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/provision/duty"
)

// AnsweringConfig is what an Answering needs.
type AnsweringConfig struct {
	Networks   *Networks
	Duties     *duty.Keeper
	Besides    []string // the duties that the instance would have besides those of networks
	Interfaces []string
	Links      func() []string // where other instances reach this one now
	IsCutOff   func() bool     // the instance with the engine lives, and does not answer this one; nil: it does
	Log        *slog.Logger
}

// Answering has the duties of networks: it says which ones this instance would have, and on which it answers now. wants has the rule.
//
// When the instance gains a network, Answering reads the leases there, and answers only after that. On a database of one instance it holds
// the duties of all networks for the list of them, and asks for none.
type Answering struct {
	// Answers reports whether this instance answers on a subnet now. The servers of DHCP, DHCPv6 and router advertisements ask it for each
	// packet of a subnet. It is nil when there is no other instance.
	Answers func(subnet string) bool
	// Gained is called when the instance has gained a network, after its leases were read. Set it before Serve; nil is nobody.
	Gained func()

	cfg       AnsweringConfig
	began     time.Time
	places    atomic.Pointer[map[string]*place] // by subnet; replaced whole, so that packets read it without a lock
	instances atomic.Pointer[[]netip.Addr]      // the addresses of the others
	poked     chan struct{}
	replacing sync.Mutex // of places
	servers   sync.WaitGroup
	deaf      map[string]bool // interfaces without a link; look has it for itself
}

// place is a network, and how this instance stands to it.
type place struct {
	subnet  string
	duty    string
	epoch   atomic.Int64 // in which its leases were read; 0: they are not
	askedAt atomic.Int64 // when a packet of it last came here, as nanoseconds since Answering.began; 0: never
}

const (
	placesEvery = 2 * time.Second // how often interfaces and other instances are looked at
	// askedFor is how long an instance goes on to want a network that only relays reach, after the last packet from there.
	askedFor = time.Hour
	// takeAgainIn is when leases are read again that could not be read.
	takeAgainIn = 250 * time.Millisecond
)

// NewAnswering makes an Answering for networks. It answers nowhere before Serve.
func NewAnswering(cfg AnsweringConfig) *Answering {
	a := &Answering{cfg: cfg, began: time.Now(), poked: make(chan struct{}, 1), deaf: map[string]bool{}}
	a.places.Store(&map[string]*place{})
	a.instances.Store(&[]netip.Addr{})
	n := cfg.Networks
	n.changed = a.replace
	if !cfg.Duties.IsAlone() {
		a.Answers = a.answers
		n.duties, n.answers, n.asking = cfg.Duties, a.has, make(chan struct{}, holdersAtOnce)
		n.others = func() []netip.Addr { return *a.instances.Load() }
	}
	a.replace()
	return a
}

// PeerAddresses returns the addresses of the other instances, whether they run or not.
func PeerAddresses(k *duty.Keeper) (all []netip.Addr) {
	peers, _ := k.Others()
	for _, p := range peers {
		for _, text := range p.Addresses {
			if at, err := netip.ParseAddr(text); err == nil {
				all = append(all, at)
			}
		}
	}
	return all
}

// Subnets returns the names of the subnets that this instance answers on now.
func (a *Answering) Subnets() (names []string) {
	for name, p := range *a.places.Load() {
		if a.Answers == nil || a.holds(p) {
			names = append(names, name)
		}
	}
	return names
}

// IsInstance reports whether an address is of another instance.
func (a *Answering) IsInstance(at netip.Addr) bool { return slices.Contains(*a.instances.Load(), at) }

// answers notes that a packet of a subnet came here, and reports whether this instance answers it.
func (a *Answering) answers(subnet string) bool {
	p := (*a.places.Load())[subnet]
	if p == nil {
		return false
	}
	now := int64(time.Since(a.began)) + 1
	if was := p.askedAt.Swap(now); was == 0 || now-was > int64(askedFor) {
		a.poke()
	}
	return a.holds(p)
}

// has reports whether this instance answers on a subnet.
func (a *Answering) has(subnet string) bool {
	p := (*a.places.Load())[subnet]
	return p != nil && a.holds(p)
}

func (a *Answering) holds(p *place) bool {
	epoch, ok := a.cfg.Duties.Epoch(p.duty)
	return ok && epoch == p.epoch.Load()
}

func (a *Answering) poke() {
	select {
	case a.poked <- struct{}{}:
	default:
	}
}

// replace makes the places of the subnets that there are now. A subnet that was deleted and made again is a new place: the books have
// forgotten its leases.
func (a *Answering) replace() {
	a.replacing.Lock()
	defer a.replacing.Unlock()
	was, now := *a.places.Load(), map[string]*place{}
	for _, s := range *a.cfg.Networks.all.Load() {
		if now[s.Name] = was[s.Name]; now[s.Name] == nil {
			now[s.Name] = &place{subnet: s.Name, duty: inventory.NetworkDuty(s.Name)}
		}
	}
	a.places.Store(&now)
	a.poke()
}

// work answers on a network whenever the instance has its duty.
type work struct {
	stop     context.CancelFunc
	hasEnded atomic.Bool
}

// Around returns a server whose leases are stored under the duties of networks. Serve gives the networks up after that server has ended, so
// that it still stores what it has taken in.
func (a *Answering) Around(serve func(context.Context) error) func(context.Context) error {
	a.servers.Add(1)
	return func(ctx context.Context) error {
		defer a.servers.Done()
		return serve(ctx)
	}
}

// Serve has the duties of networks until ctx ends. Then it gives them up. Another instance need not wait for the other parts of this one,
// which finish what they have begun.
func (a *Answering) Serve(ctx context.Context) error {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	var works sync.WaitGroup
	a.serve(ctx, working, &works)
	a.servers.Wait()
	end()
	works.Wait()
	if !a.cfg.Duties.IsAlone() {
		a.cfg.Duties.Want(a.cfg.Besides...)
	}
	return nil
}

// serve wants networks until ctx ends, and answers on those that it has until working ends.
func (a *Answering) serve(ctx, working context.Context, all *sync.WaitGroup) {
	works := map[*place]*work{}
	var told []string
	for {
		wanted := a.look(ctx)
		for p, w := range works {
			if !slices.Contains(wanted, p) {
				w.stop()
			}
			if w.hasEnded.Load() {
				delete(works, p)
			}
		}
		names := slices.Clone(a.cfg.Besides)
		for _, p := range wanted {
			names = append(names, p.duty)
			if works[p] == nil && a.Answers != nil {
				of, stop := context.WithCancel(working)
				w := &work{stop: stop}
				works[p] = w
				all.Go(func() {
					_ = a.cfg.Duties.While(of, p.duty, func(held context.Context) error { return a.answer(held, p) })
					w.hasEnded.Store(true)
					a.poke() // it may be wanted again by now
				})
			}
		}
		if slices.Sort(names); !slices.Equal(names, told) { // each Want costs a transaction
			a.cfg.Duties.Want(names...)
			told = names
		}
		select {
		case <-ctx.Done():
			return
		case <-a.poked:
		case <-time.After(a.again()):
		}
	}
}

// look returns the networks that this instance would answer on now.
func (a *Answering) look(ctx context.Context) (wanted []*place) {
	v := view{isCutOff: a.cfg.IsCutOff != nil && a.cfg.IsCutOff()}
	var reached []string
	for _, name := range a.cfg.Interfaces {
		if !a.hears(name) {
			continue
		}
		at := attached{name: name}
		for _, p := range PrefixesOf(name) {
			at.addrs = append(at.addrs, p.Addr().Unmap())
			reached = append(reached, p.Addr().Unmap().String())
		}
		v.ours = append(v.ours, at)
	}
	a.cfg.Duties.Tell(func(t *duty.Told) { t.Addresses, t.Links = reached, a.cfg.Links() })
	v.peers, v.isMet = a.cfg.Duties.Others()
	if now := PeerAddresses(a.cfg.Duties); !slices.Equal(now, *a.instances.Load()) {
		a.instances.Store(&now)
		if err := a.cfg.Networks.Reread(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("networks not read", "err", err)
		}
	}
	places := *a.places.Load()
	for _, s := range *a.cfg.Networks.all.Load() {
		p := places[s.Name]
		if p == nil { // made this moment: replace pokes
			continue
		}
		askedAt := p.askedAt.Load()
		isAsked := askedAt != 0 && time.Since(a.began)-time.Duration(askedAt) < askedFor
		if a.cfg.Duties.IsAlone() || v.wants(s, isAsked) {
			wanted = append(wanted, p)
		}
	}
	return wanted
}

// hears reports whether packets can come in at an interface. Its address stays while its cable is out, and the instance still gives signs of
// life if it reaches the database another way. So it has to leave the networks there to others by itself.
func (a *Answering) hears(name string) bool {
	if a.cfg.Duties.IsAlone() { // there is nobody to leave a network to
		return true
	}
	hears := hasLink(name)
	if a.deaf[name] == hears {
		a.deaf[name] = !hears
		word := "interface has a link again"
		if !hears {
			word = "interface has no link: its networks are left to other instances"
		}
		a.cfg.Log.Warn(word, "iface", name)
	}
	return hears
}

// again is when to look the next time: soon, while the database has not told who the other instances are.
func (a *Answering) again() time.Duration {
	if _, isMet := a.cfg.Duties.Others(); !isMet {
		return takeAgainIn
	}
	return placesEvery
}

// answer answers on a network until ctx ends with the duty.
func (a *Answering) answer(ctx context.Context, p *place) error {
	gained := time.Now()
	for ctx.Err() == nil {
		epoch, ok := a.cfg.Duties.Epoch(p.duty)
		if !ok {
			break // ctx ends
		}
		if err := a.cfg.Networks.take(ctx, p.subnet, epoch, gained); err != nil {
			if ctx.Err() == nil {
				a.cfg.Log.Warn("dhcp not answered on a network of this instance: its leases cannot be read", "subnet", p.subnet, "err", err)
			}
			_ = sleep.For(ctx, takeAgainIn)
			continue
		}
		p.epoch.Store(epoch)
		if a.Gained != nil {
			a.Gained()
		}
		break
	}
	<-ctx.Done()
	p.epoch.Store(0)
	return nil
}
