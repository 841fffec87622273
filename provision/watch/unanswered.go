package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// SilencesConfig is everything that Silences need.
type SilencesConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Recorder       *recorder.Recorder
	Diagnoser      *Diagnoser
	// Known returns the host of a MAC, nil when nobody knows it, and what it would boot in a subnet.
	Known func(tx inventory.Tx, mac inventory.MAC, subnet string) (*inventory.Host, pxe.Plan, error)
	// Heard finds or begins the boot of a machine that sends a packet.
	Heard func(c pxe.Client, kind string) inventory.BootSession
}

// Silences find machines that get no answer to DHCP. Unanswered may be called from many goroutines.
type Silences struct {
	cfg      SilencesConfig
	silences silences
}

// Configure gives Silences what they need.
func (sl *Silences) Configure(cfg SilencesConfig) { sl.cfg = cfg }

// silences are the machines whose DISCOVERs and SOLICITs lead to no address. They are bounded: the longest silent makes room.
type silences struct {
	mu    sync.Mutex
	byMAC map[inventory.MAC]*silence
	told  map[string]int // the issues about strangers that are open, by key, with how many they name; of the look alone
}

// silence is a machine that asks in vain.
type silence struct {
	client          pxe.Client
	place, reason   string
	isMeant, isNew  bool
	n               int // DISCOVERs of this attempt
	firstAt, lastAt time.Time
	hasHost         bool
	notedIn         inventory.SessionID // whose timeline says so, with notedWhy
	notedWhy        string
}

const (
	maxSilences = 4096
	// strangersAskFor is for how long a machine that is not listed may ask in vain before an issue says so.
	strangersAskFor = time.Minute
	// strangersGoneAfter is when such a machine counts as gone.
	strangersGoneAfter = 10 * time.Minute
	strangersNamed     = 5 // in one issue
	maxCrowds          = 50
	// goesOnWithin is how soon a machine that got an answer by one way is done with what it asked by another.
	goesOnWithin = 10 * time.Second
	// triesNextFor is how long after a boot a question where nothing is served belongs to that.
	triesNextFor = 10 * time.Minute
)

// Unanswered notes that a DISCOVER or SOLICIT of a machine led to no address, and why. The client's stage is "" when the
// server dropped the packet unread. isMeant says that this is as the subnet is configured. It never waits.
func (sl *Silences) Unanswered(c pxe.Client, iface, reason string, isMeant bool) {
	// An operating system asks by itself, and owes us no boot.
	if c.MAC == "" || c.Stage == pxe.StageOS {
		return
	}
	// Behind a relay all machines of a network come in at one interface. The relay says where they are.
	place := iface
	if c.Relay.IsValid() {
		place = "relay " + c.Relay.String()
	}
	sl.silences.add(c, place, reason, isMeant, sl.cfg.Now())
}

func (t *silences) add(c pxe.Client, place, reason string, isMeant bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byMAC == nil {
		t.byMAC = map[inventory.MAC]*silence{}
	}
	s := t.byMAC[c.MAC]
	// After a long silence it is a new attempt. Its count and its first time begin again.
	if s == nil || now.Sub(s.lastAt) > strangersGoneAfter {
		if s == nil && len(t.byMAC) >= maxSilences {
			t.makeRoom()
		}
		s = &silence{firstAt: now}
		t.byMAC[c.MAC] = s
	}
	s.client, s.place, s.reason, s.isMeant, s.isNew, s.lastAt = c, place, reason, isMeant, true, now
	s.n++
}

func (t *silences) makeRoom() {
	var oldest inventory.MAC
	for m, s := range t.byMAC {
		if oldest == "" || s.lastAt.Before(t.byMAC[oldest].lastAt) {
			oldest = m
		}
	}
	// The bound keeps a flood of invented MACs out of the memory. A machine that still asks comes in again.
	delete(t.byMAC, oldest)
}

// take returns the machines that asked since the last look, and forgets those that are gone or got an answer.
func (t *silences) take(now time.Time, isAnswered func(m inventory.MAC, since time.Time) bool) (fresh []silence) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for m, s := range t.byMAC {
		if now.Sub(s.lastAt) > strangersGoneAfter || isAnswered(m, s.lastAt) {
			delete(t.byMAC, m)
		} else if s.isNew {
			s.isNew = false
			fresh = append(fresh, *s)
		}
	}
	// In the order in which they asked, as the log and the timelines should show it.
	slices.SortFunc(fresh, func(a, b silence) int { return a.lastAt.Compare(b.lastAt) })
	return fresh
}

// isAnswered reports whether a machine came further since it asked in vain.
func (sl *Silences) isAnswered(m inventory.MAC, since time.Time) bool {
	s, ok := sl.cfg.Sessions.Of(m)
	return ok && sl.cfg.Sessions.StepOf(&s).At.After(since) && session.StepIndex(s.Step) > session.StepIndex(inventory.EventDHCPDiscover)
}

// change lets fn change what is kept of a machine.
func (t *silences) change(m inventory.MAC, fn func(*silence)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byMAC[m]; s != nil {
		fn(s)
	}
}

// hear begins the boots of hosts that ask in vain, so that their deadlines and timelines are those of any boot,
// and opens and closes the issues about machines that are not listed.
func (sl *Silences) hear(ctx context.Context) error {
	now := sl.cfg.Now()
	fresh := sl.silences.take(now, sl.isAnswered)
	for i := range fresh {
		s := &fresh[i]
		host, isOwed, err := sl.whoAsks(ctx, s)
		if err != nil {
			return err
		}
		// The lock was free during the transaction, so the machine may be gone by now. change then does nothing.
		sl.silences.change(s.client.MAC, func(kept *silence) { kept.hasHost = host != "" })
		if isOwed {
			sl.asksInVain(s)
		}
	}
	return sl.tellOfStrangers(ctx)
}

// whoAsks finds the host of a machine that asks in vain, and says whether it is owed an answer: always, unless that it
// gets none is meant, or the packet may be one of an operating system: then only what is to boot from us is.
func (sl *Silences) whoAsks(ctx context.Context, s *silence) (id inventory.HostID, isOwed bool, err error) {
	err = sl.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, plan, err := sl.cfg.Known(tx, s.client.MAC, s.client.Subnet)
		if err != nil || h == nil {
			return err
		}
		id, isOwed = h.ID, true
		if s.isMeant || s.client.Stage == "" {
			// The packet does not say what it is. As firmware it would get a boot, if there were one.
			c := s.client
			c.Stage, c.Arch, c.Firmware = pxe.StageFirmware, cmp.Or(c.Arch, h.Arch), cmp.Or(c.Firmware, h.Firmware)
			boot := pxe.Decide(c, h, plan, sl.cfg.Now()).Boot
			isOwed = boot == pxe.BootImage || boot == pxe.BootAgent
		}
		return nil
	})
	return id, isOwed, err
}

// asksInVain moves the boot of a host that asks in vain, with a line in its timeline once per boot and reason.
func (sl *Silences) asksInVain(s *silence) {
	was, ok := sl.cfg.Sessions.Of(s.client.MAC)
	if hasBooted := ok && session.StepIndex(was.Step) > session.StepIndex(inventory.EventDHCPDiscover); hasBooted && s.isMeant && s.lastAt.Sub(was.LastAt) < triesNextFor {
		return // its firmware goes on to its next way to boot, such as IPv6 after IPv4: what counts is where the first led
	}
	b := sl.cfg.Heard(s.client, inventory.EventDHCPDiscover)
	if hasGoneOn := session.StepIndex(b.Step) > session.StepIndex(inventory.EventDHCPDiscover); hasGoneOn && s.lastAt.Sub(sl.cfg.Sessions.StepOf(&b).At) < goesOnWithin {
		return // an answer came by another way
	}
	if b.ID == s.notedIn && s.reason == s.notedWhy {
		return
	}
	// Noted before the event is written, so that the next packet, seconds later, adds no second line.
	sl.silences.change(s.client.MAC, func(kept *silence) { kept.notedIn, kept.notedWhy = b.ID, s.reason })
	sl.cfg.Recorder.Take(recorder.Note{Session: b, Event: inventory.Event{
		At: s.lastAt, Kind: inventory.EventDHCPUnanswered, SessionID: b.ID, MAC: b.MAC, HostID: b.HostID,
		Subject: subjectOf(s.client.Subnet), Detail: inventory.Clean("on "+s.place+": "+s.reason, 300),
		Data: map[string]any{"reason": s.reason},
	}})
	sl.cfg.Log.Warn("asks for an address and gets no answer", "mac", b.MAC, "place", s.place, "reason", s.reason)
}

func subjectOf(subnet string) string {
	if subnet == "" {
		return ""
	}
	return "subnet/" + subnet
}

// crowd is the strangers that ask in vain at one place for one reason.
type crowd struct {
	subnet, place, reason string
	macs                  []inventory.MAC
}

func (c *crowd) key() string { return inventory.IssueStalled + "/" + c.place + "/" + c.reason }

// issue is what a crowd comes to.
func (c *crowd) issue() inventory.Issue {
	// Sorted, because the order of a map differs each time. The text would change without news.
	slices.Sort(c.macs)
	var names []string
	for _, m := range c.macs[:min(len(c.macs), strangersNamed)] {
		names = append(names, string(m))
	}
	who := "the machine " + names[0] + ", which is not listed, asks"
	if n := len(c.macs); n > 1 {
		who = fmt.Sprintf("%d machines that are not listed ask", n)
	}
	cause := fmt.Sprintf("%s on %s for an address in vain: %s", who, c.place, c.reason)
	if len(c.macs) > 1 {
		cause += " (" + strings.Join(names, ", ")
		if len(c.macs) > len(names) {
			cause += ", ..."
		}
		cause += ")"
	}
	return inventory.Issue{
		Key: c.key(), Type: inventory.IssueStalled, Severity: inventory.SeverityWarning, Subnet: c.subnet, Cause: cause,
		Hint: "slipway host explain " + names[0],
	}
}

// crowds gathers the strangers that have asked in vain for so long that somebody should know, by their issues' keys.
func (t *silences) crowds() map[string]*crowd {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]*crowd{}
	for m, s := range t.byMAC {
		// One packet may be lost or come from a machine that finds another server. Two over a minute are a real failure.
		if s.hasHost || s.isNew || s.isMeant || s.client.Stage == "" || s.n < 2 || s.lastAt.Sub(s.firstAt) < strangersAskFor {
			continue
		}
		x := &crowd{subnet: s.client.Subnet, place: s.place, reason: s.reason}
		if was := all[x.key()]; was != nil {
			x = was
		} else if len(all) == maxCrowds {
			// The bound is on issues. Machines beyond it come in when others are gone.
			continue
		}
		x.macs = append(x.macs, m)
		all[x.key()] = x
	}
	return all
}

// tellOfStrangers opens an issue for each place and reason at which machines that are not listed ask in vain, and closes
// it when they are gone, listed or answered.
func (sl *Silences) tellOfStrangers(ctx context.Context) error {
	all := sl.silences.crowds()
	var news []*crowd
	// An issue is written again only when more machines ask, not with every packet.
	for key, c := range all {
		if len(c.macs) > sl.silences.told[key] {
			news = append(news, c)
		}
	}
	var over []string
	for key := range sl.silences.told {
		if all[key] == nil {
			over = append(over, key)
		}
	}
	if len(news) == 0 && len(over) == 0 {
		return nil
	}
	err := sl.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		for _, c := range news {
			i := c.issue()
			if why, refs, ok := sl.cfg.Diagnoser.Likeliest(tx, "", c.macs[0]); ok {
				i.Refs = append(i.Refs, refs...)
				i.Hint = why.Hint + "; " + i.Hint
			}
			if err := sl.cfg.Ledger.OpenIssue(tx, i); err != nil {
				return err
			}
		}
		for _, key := range over {
			if err := sl.cfg.Ledger.CloseIssue(tx, inventory.Issue{Key: key, Type: inventory.IssueStalled}, "they are gone, listed or answered"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// After the commit: with a failed transaction the next look tries the same again.
	if sl.silences.told == nil {
		sl.silences.told = map[string]int{}
	}
	for _, c := range news {
		sl.silences.told[c.key()] = len(c.macs)
	}
	for _, key := range over {
		delete(sl.silences.told, key)
	}
	return nil
}
