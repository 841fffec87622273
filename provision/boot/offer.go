package boot

import (
	"context"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// Offers decides what DHCP offers to machines that want to boot.
type Offers struct {
	Frame
	planner  *Planner
	registry *Registry
	timeline *Timeline
	gate     *strangers.Gate
}

// Offer says what DHCP should add to its answer for a machine that wants to boot. It finds or begins the boot session and
// asks pxe.Decide. An unknown machine becomes a host in state discovered. base is the boot listener's URL as that machine
// reaches it.
func (o *Offers) Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply {
	k, err := o.lookUp(ctx, c)
	if err != nil {
		// The store cannot be read: the machine still gets an address, and asks again.
		o.Log.Error("boot not decided", "mac", c.MAC, "err", err)
		return pxe.Reply{}
	}
	if k, err = o.atPort(ctx, c, k); err != nil {
		o.Log.Error("host of switch port not found", "mac", c.MAC, "port", c.Port, "err", err)
	}
	// A pinned host on a wrong port boots nothing, and its work waits: the machine may be another one.
	h, p := k.host, k.plan
	if h != nil {
		if problem := o.registry.heardOn(h, c); problem != nil {
			p.Problem, p.Work = problem, nil
		}
	}
	d := pxe.Decide(c, h, p, o.Now())
	if o.loadsAgain(c) && d.Loader != "" {
		d = pxe.Decision{
			Boot: pxe.BootIgnore, IsTrap: true, Reason: "it was sent " + d.Loader + loadedForNothing,
			Hint: "put an iPXE with HTTP into the folder of --loaders, or take " + d.Loader + " out of it: Debian's package ipxe has HTTP",
		}
	}
	if h == nil && o.Sessions.HostOf(c.MAC) == "" {
		if !o.gate.MayDiscover(c) {
			// Too many strangers at once to note each packet. A real machine comes back for its script and is listed
			// then; an invented MAC leaves nothing behind.
			return pxe.Answer(c, d, "", base)
		}
		o.registry.discover(c)
	}
	if h != nil {
		o.registry.seen(h)
	}
	// Also for a machine that gets no loader: its packet then shows in the timeline.
	s := o.timeline.Heard(c, inventory.EventDHCPDiscover)
	if isFinal(d) && (s.Boot != string(d.Boot) || s.Reason != d.Reason) {
		o.decidedEarly(c, s, d)
	} else if strings.HasSuffix(s.Reason, loadedForNothing) && !isFinal(d) { // it started over
		s.Boot, s.Reason = "", ""
		o.Sessions.Put(s)
	}
	return pxe.Answer(c, d, s.ID, base)
}

// Foresee decides as Offer does, and leaves no trace: it begins no boot session, and discovers no machine. An instance without the engine
// answers DHCP by it while the one that has the engine does not answer. The boot then begins with the machine's script.
func (o *Offers) Foresee(ctx context.Context, c pxe.Client, base string) pxe.Reply {
	k, err := o.lookUp(ctx, c)
	if err != nil {
		o.Log.Error("boot not decided", "mac", c.MAC, "err", err)
		return pxe.Reply{}
	}
	p := k.plan
	if k.host != nil {
		if problem := portProblemFor(k.host, c); problem != nil {
			p.Problem, p.Work = problem, nil
		}
	}
	return pxe.Answer(c, pxe.Decide(c, k.host, p, o.Now()), "", base)
}

// known is what the store says of a machine that asks.
type known struct {
	host *inventory.Host // nil: never heard of
	plan pxe.Plan
}

// lookUp reads what is known about the machine that owns the packet's MAC.
func (o *Offers) lookUp(ctx context.Context, c pxe.Client) (k known, err error) {
	err = o.Store.Read(ctx, func(tx inventory.Tx) error {
		k.host, k.plan, err = o.planner.Known(tx, c.MAC, c.Subnet)
		return err
	})
	return k, err
}

// atPort asks pinned for an unknown MAC on a port that a host is pinned to; it writes only then.
func (o *Offers) atPort(ctx context.Context, c pxe.Client, k known) (known, error) {
	if k.host != nil || c.Port == "" {
		return k, nil
	}
	// First a read, which waits for nobody. Most unknown machines are on ports that nobody has pinned.
	err := o.Store.Read(ctx, func(tx inventory.Tx) error {
		_, err := tx.FindHostByPort(c.Port)
		return err
	})
	if err != nil {
		return k, ledger.IgnoreNotFound(err)
	}
	err = o.Store.Write(ctx, func(tx inventory.Tx) error {
		// Asked again in the transaction that writes, because another packet may have been faster.
		isIt, err := o.registry.pinned(tx, c)
		if err == nil && isIt {
			k.host, k.plan, err = o.planner.Known(tx, c.MAC, c.Subnet)
		}
		return err
	})
	return k, err
}

// loadsAgainWithin is how soon a loader that was sent asks for an address; firmware that starts over needs longer.
const (
	loadsAgainWithin = 20 * time.Second
	loadedForNothing = ", and what runs now has no HTTP either: it would load that again for ever"
)

// loadsAgain reports whether an iPXE without HTTP asks that was loaded from here a moment before: a loader is given once.
func (o *Offers) loadsAgain(c pxe.Client) bool {
	s, ok := o.Sessions.Of(c.MAC)
	wasSent := s.Step == inventory.EventLoaderSent || strings.HasSuffix(s.Reason, loadedForNothing) // and was told so
	return c.IPXE.IsOld && ok && wasSent && o.Now().Sub(s.LastAt) < loadsAgainWithin
}

// isFinal reports whether a decision made for DHCP is the last word: the machine gets no loader and asks no more.
func isFinal(d pxe.Decision) bool {
	return d.Boot == pxe.BootIgnore || d.Boot == pxe.BootDisk && d.Disk == inventory.DiskNoOffer
}

// decidedEarly notes a decision that ends a boot before any script: nothing of ours will run, so this is the only
// place where the reason can show.
func (o *Offers) decidedEarly(c pxe.Client, s inventory.BootSession, d pxe.Decision) {
	// Memory first, so that the next packet of the same machine finds the decision and writes none again.
	s.Boot, s.Reason, s.Refs = string(d.Boot), d.Reason, d.Refs
	o.Sessions.Put(s)
	n := recorder.Note{Session: s, Event: inventory.Event{
		At: o.Now(), Kind: inventory.EventBootDecided, SessionID: s.ID, MAC: c.MAC,
		HostID: s.HostID, Detail: decisionLine(d), Refs: d.Refs,
	}}
	if d.IsTrap && s.HostID != "" {
		issue := operation.BootRefused(s.HostID, c.Subnet, d)
		n.Do = func(tx inventory.Tx) error { return o.Ledger.OpenIssue(tx, issue) }
	}
	o.Recorder.Take(n)
}

// decisionLine is a decision in one line for the timeline.
func decisionLine(d pxe.Decision) string {
	line := string(d.Boot) + ": " + d.Reason
	if d.Hint != "" {
		line += " (" + d.Hint + ")"
	}
	return line
}
