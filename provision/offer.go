package provision

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// Offer says what DHCP should add to its answer for a machine that wants to boot. It finds or begins the boot session and
// asks pxe.Decide. An unknown machine becomes a host in state discovered. base is the boot listener's URL as that machine
// reaches it.
func (e *Engine) Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply {
	known, err := e.lookUp(ctx, c)
	if err != nil {
		// The store cannot be read: the machine still gets an address, and asks again.
		e.cfg.Log.Error("boot not decided", "mac", c.MAC, "err", err)
		return pxe.Reply{}
	}
	if known, err = e.atPort(ctx, c, known); err != nil {
		e.cfg.Log.Error("host of switch port not found", "mac", c.MAC, "port", c.Port, "err", err)
	}
	if known.host != nil {
		if problem := e.heardOn(known.host, c); problem != nil {
			known.plan.Problem, known.plan.Work = problem, nil
		}
	}
	d := pxe.Decide(c, known.host, known.plan, e.cfg.Now())
	if e.loadsAgain(c) && d.Loader != "" {
		d = pxe.Decision{
			Boot: pxe.BootIgnore, IsTrap: true, Reason: "it was sent " + d.Loader + loadedForNothing,
			Hint: "put an iPXE with HTTP into the folder of --loaders, or take " + d.Loader + " out of it: Debian's package ipxe has HTTP",
		}
	}
	if known.host == nil && e.sessions.HostOf(c.MAC) == "" {
		if !e.MayDiscover(c) {
			// Too many strangers at once to note each packet. A real machine comes back for its script and is listed
			// then; an invented MAC leaves nothing behind.
			return pxe.Answer(c, d, "", base)
		}
		e.discover(c)
	}
	if known.host != nil {
		e.seen(known.host)
	}
	s := e.heard(c, inventory.EventDHCPDiscover)
	if isFinal(d) && (s.Boot != string(d.Boot) || s.Reason != d.Reason) {
		e.decidedEarly(c, s, d)
	} else if strings.HasSuffix(s.Reason, loadedForNothing) && !isFinal(d) { // it started over
		s.Boot, s.Reason = "", ""
		e.sessions.Put(s)
	}
	return pxe.Answer(c, d, s.ID, base)
}

// loadsAgainWithin is how soon a loader that was sent asks for an address; firmware that starts over needs longer.
const (
	loadsAgainWithin = 20 * time.Second
	loadedForNothing = ", and what runs now has no HTTP either: it would load that again for ever"
)

// loadsAgain reports whether an iPXE without HTTP asks that was loaded from here a moment before: a loader is given once.
func (e *Engine) loadsAgain(c pxe.Client) bool {
	s, ok := e.sessions.Of(c.MAC)
	wasSent := s.Step == inventory.EventLoaderSent || strings.HasSuffix(s.Reason, loadedForNothing) // and was told so
	return c.IPXE.IsOld && ok && wasSent && e.cfg.Now().Sub(s.LastAt) < loadsAgainWithin
}

// isFinal reports whether a decision made for DHCP is the last word: the machine gets no loader and asks no more.
func isFinal(d pxe.Decision) bool {
	return d.Boot == pxe.BootIgnore || d.Boot == pxe.BootDisk && d.Disk == inventory.DiskNoOffer
}

// decidedEarly notes a decision that ends a boot before any script: nothing of ours will run, so this is the only
// place where the reason can show.
func (e *Engine) decidedEarly(c pxe.Client, s inventory.BootSession, d pxe.Decision) {
	s.Boot, s.Reason, s.Refs = string(d.Boot), d.Reason, d.Refs
	e.sessions.Put(s)
	n := recorder.Note{Session: s, Event: inventory.Event{
		At: e.cfg.Now(), Kind: inventory.EventBootDecided, SessionID: s.ID, MAC: c.MAC,
		HostID: s.HostID, Detail: decisionLine(d), Refs: d.Refs,
	}}
	if d.IsTrap && s.HostID != "" {
		issue := operation.BootRefused(s.HostID, c.Subnet, d)
		n.Do = func(tx inventory.Tx) error { return e.ledger.OpenIssue(tx, issue) }
	}
	e.recorder.Take(n)
}

// decisionLine is a decision in one line for the timeline.
func decisionLine(d pxe.Decision) string {
	line := string(d.Boot) + ": " + d.Reason
	if d.Hint != "" {
		line += " (" + d.Hint + ")"
	}
	return line
}

// heard finds or begins the session for a sign of a machine and notes what began or was replaced.
func (e *Engine) heard(c pxe.Client, kind string) inventory.BootSession {
	s, replaced, isNew := e.sessions.Heard(c, kind)
	if replaced.ID != "" {
		e.ledger.End(replaced, inventory.OutcomeAbandoned, "the machine started over after "+replaced.Step)
	}
	if isNew {
		e.recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
			At: s.StartedAt, Kind: inventory.EventSessionStarted,
			SessionID: s.ID, MAC: s.MAC, HostID: s.HostID, Detail: describe(c),
		}})
	}
	return s
}

// describe says in one line what a packet tells about a machine.
func describe(c pxe.Client) string {
	line := string(c.Stage)
	for _, word := range []string{string(c.Firmware), string(c.Arch)} {
		if word != "" {
			line += " " + word
		}
	}
	if c.Class != "" {
		line += fmt.Sprintf(" %q", inventory.Clean(c.Class, 64))
	}
	return line
}

// Note adds an event to the boot session of a machine; it never waits.
func (e *Engine) Note(_ context.Context, c pxe.Client, kind, detail string) {
	var s inventory.BootSession
	switch kind {
	case inventory.EventDHCPDiscover, inventory.EventDHCPRequest, inventory.EventDHCPOffer, inventory.EventDHCPAck:
		if c.Stage == pxe.StageOS {
			if kind == inventory.EventDHCPAck {
				e.HeardOS(c.MAC)
			}
			return
		}
		if e.sessions.HostOf(c.MAC) == "" {
			if _, running := e.sessions.Of(c.MAC); !running {
				return // a machine that Offer did not take on
			}
		}
		s = e.heard(c, kind)
	default:
		s, _ = e.sessions.Of(c.MAC)
	}
	e.recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: e.cfg.Now(), Kind: kind, SessionID: s.ID, MAC: c.MAC,
		HostID: s.HostID, Detail: inventory.Clean(detail, 500),
	}})
}

// Transferring notes that a boot file began to be sent.
func (e *Engine) Transferring(t pxe.Transfer) {
	kind := inventory.EventLoaderStarted
	if !pxe.IsLoader(t.Name) || strings.HasPrefix(t.Name, "memtest.") {
		if s, ok := e.sessionAt(t.Source); ok && (t.Session == "" || t.Session == s.ID) {
			e.sessions.Loading(&s, t.Name)
		}
		return // artefacts come in many ranges; their end is enough for the timeline
	}
	e.transfer(t, kind, fmt.Sprintf("%s over %s", t.Name, t.Proto))
}

// Transferred notes how sending a boot file or artefact ended.
func (e *Engine) Transferred(t pxe.Transfer) {
	if s, ok := e.sessionAt(t.Source); ok {
		e.sessions.Loaded(&s, t.Name)
	}
	sent, failed := inventory.EventLoaderSent, inventory.EventLoaderFailed
	if !pxe.IsLoader(t.Name) {
		if t.Err != nil && t.Size == 0 && pxe.IsProbe(t.Name) {
			return // it goes on to the next name
		}
		title, isArtefact := pxe.TitleOf(t.Name)
		if !isArtefact && t.Err == nil {
			return // a script: that it was asked for is in the timeline
		}
		t.Name, sent, failed = title, inventory.EventArtefactSent, inventory.EventArtefactFailed
	}
	if t.Err != nil {
		e.transfer(t, failed, fmt.Sprintf("%s over %s stopped at %d of %d bytes: %v", t.Name, t.Proto, t.Bytes, t.Size, t.Err))
		return
	}
	text := fmt.Sprintf("%s over %s, %d bytes in %s", t.Name, t.Proto, t.Bytes, t.Took.Round(1e6))
	if t.Resent > 0 {
		text += fmt.Sprintf(", %d blocks were lost and sent again", t.Resent)
	}
	e.transfer(t, sent, text)
}

func (e *Engine) transfer(t pxe.Transfer, kind, detail string) {
	s, ok := e.sessionAt(t.Source)
	if !ok || t.Session != "" && t.Session != s.ID {
		return // no boot of ours: somebody fetched the file by hand
	}
	s, _, _ = e.sessions.Heard(pxe.Client{MAC: s.MAC, Address: t.Source}, kind)
	e.recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: e.cfg.Now(), Kind: kind, SessionID: s.ID, MAC: s.MAC,
		HostID: s.HostID, Detail: inventory.Clean(detail, 500),
		Data: map[string]any{"name": t.Name, "proto": t.Proto, "bytes": t.Bytes, "size": t.Size, "seconds": t.Took.Seconds(), "resent": t.Resent},
	}})
}

// Exhausted opens the issue that a subnet has no address left; Refilled is its end.
func (e *Engine) Exhausted(subnet string) {
	e.recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		return e.ledger.OpenIssue(tx, inventory.Issue{
			Key: inventory.IssuePoolExhausted + "/" + subnet, Type: inventory.IssuePoolExhausted,
			Severity: inventory.SeverityError, Subnet: subnet, Cause: "subnet " + subnet + " has no free address left",
			Hint: "add a range with: slipway range add " + subnet + " FIRST-LAST",
		})
	}})
}

// exhaustedFor is how long a subnet is called full after the last machine that got no address; while it is full, that is
// told every 10 s.
const exhaustedFor = time.Minute

// areGone reports whether all of some hosts were deleted.
func areGone(tx inventory.Tx, ids []inventory.HostID) (bool, error) {
	for _, id := range ids {
		if _, err := tx.FindHost(id); !inventory.IsKind(err, inventory.NotFound) {
			return false, err
		}
	}
	return true, nil
}

// endIssues closes the issues of subnets that have room again, or that nobody asks any more, and of hosts that were deleted.
func (e *Engine) endIssues(tx inventory.Tx) error {
	open, err := tx.ListIssues(false, "")
	if err != nil {
		return err
	}
	for _, i := range open {
		why := ""
		switch {
		case i.Type == inventory.IssuePoolExhausted:
			if e.cfg.Now().Sub(i.SeenAt) >= exhaustedFor {
				why = "no machine has been left without an address for " + exhaustedFor.String()
			}
		case i.Type == inventory.IssueSessionRefused && e.cfg.Now().Sub(i.SeenAt) >= delivery.StrangerForgotten:
			why = "nobody else has used the URLs of its boots for " + delivery.StrangerForgotten.String()
		case len(i.HostIDs) == 1 || len(i.HostIDs) > 0 && strings.Contains(i.Key, ledger.OfStrangersKey):
			isGone, err := areGone(tx, i.HostIDs)
			if err != nil {
				return err
			}
			if isGone {
				why = "its host was deleted"
			}
		}
		if why == "" {
			continue
		}
		if err := e.ledger.CloseIssue(tx, i, why); err != nil {
			return err
		}
	}
	return nil
}
