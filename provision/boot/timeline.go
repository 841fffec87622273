package boot

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// Timeline notes the packets and transfers of boots, and knows which boot they belong to.
type Timeline struct {
	Frame
	neighbour func(netip.Addr) (inventory.MAC, bool) // who uses an address on our own network; nil knows none
	signs     *operation.Signs
}

// Heard finds or begins the session for a sign of a machine and notes what began or was replaced.
func (t *Timeline) Heard(c pxe.Client, kind string) inventory.BootSession {
	s, replaced, isNew := t.Sessions.Heard(c, kind)
	if replaced.ID != "" {
		// The old boot ends with the first sign of the new one, because firmware says no farewell.
		t.Ledger.End(replaced, inventory.OutcomeAbandoned, "the machine started over after "+replaced.Step)
	}
	if isNew {
		t.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
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
func (t *Timeline) Note(_ context.Context, c pxe.Client, kind, detail string) {
	var s inventory.BootSession
	switch kind {
	case inventory.EventDHCPDiscover, inventory.EventDHCPRequest, inventory.EventDHCPOffer, inventory.EventDHCPAck:
		// An operating system that gets its address is a sign for its operation, and no boot.
		if c.Stage == pxe.StageOS {
			if kind == inventory.EventDHCPAck {
				t.signs.HeardOS(c.MAC)
			}
			return
		}
		if t.Sessions.HostOf(c.MAC) == "" {
			// A packet alone must not fill the store: Offer decides which unknown machines are listed.
			if _, running := t.Sessions.Of(c.MAC); !running {
				return // a machine that Offer did not take on
			}
		}
		s = t.Heard(c, kind)
	default:
		s, _ = t.Sessions.Of(c.MAC)
	}
	t.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: t.Now(), Kind: kind, SessionID: s.ID, MAC: c.MAC,
		HostID: s.HostID, Detail: inventory.Clean(detail, 500),
	}})
}

// Transferring notes that a boot file began to be sent.
func (t *Timeline) Transferring(f pxe.Transfer) {
	kind := inventory.EventLoaderStarted
	if !pxe.IsLoader(f.Name) || strings.HasPrefix(f.Name, "memtest.") {
		if s, ok := t.SessionAt(f.Source); ok && (f.Session == "" || f.Session == s.ID) {
			t.Sessions.Loading(&s, f.Name)
		}
		return // artefacts come in many ranges; their end is enough for the timeline
	}
	t.transfer(f, kind, fmt.Sprintf("%s over %s", f.Name, f.Proto))
}

// Transferred notes how sending a boot file or artefact ended.
func (t *Timeline) Transferred(f pxe.Transfer) {
	if s, ok := t.SessionAt(f.Source); ok {
		t.Sessions.Loaded(&s, f.Name)
	}
	sent, failed := inventory.EventLoaderSent, inventory.EventLoaderFailed
	if !pxe.IsLoader(f.Name) {
		// Loaders ask for one name after another until one exists. Each miss is no failure.
		if f.Err != nil && f.Size == 0 && pxe.IsProbe(f.Name) {
			return // it goes on to the next name
		}
		title, isArtefact := pxe.TitleOf(f.Name)
		if !isArtefact && f.Err == nil {
			return // a script: that it was asked for is in the timeline
		}
		f.Name, sent, failed = title, inventory.EventArtefactSent, inventory.EventArtefactFailed
	}
	if f.Err != nil {
		t.transfer(f, failed, fmt.Sprintf("%s over %s stopped at %d of %d bytes: %v", f.Name, f.Proto, f.Bytes, f.Size, f.Err))
		return
	}
	text := fmt.Sprintf("%s over %s, %d bytes in %s", f.Name, f.Proto, f.Bytes, f.Took.Round(1e6))
	if f.Resent > 0 {
		text += fmt.Sprintf(", %d blocks were lost and sent again", f.Resent)
	}
	t.transfer(f, sent, text)
}

func (t *Timeline) transfer(f pxe.Transfer, kind, detail string) {
	s, ok := t.SessionAt(f.Source)
	// Another boot may have begun at this address since the transfer did.
	if !ok || f.Session != "" && f.Session != s.ID {
		return // no boot of ours: somebody fetched the file by hand
	}
	s, _, _ = t.Sessions.Heard(pxe.Client{MAC: s.MAC, Address: f.Source}, kind)
	t.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: t.Now(), Kind: kind, SessionID: s.ID, MAC: s.MAC,
		HostID: s.HostID, Detail: inventory.Clean(detail, 500),
		Data: map[string]any{"name": f.Name, "proto": f.Proto, "bytes": f.Bytes, "size": f.Size, "seconds": f.Took.Seconds(), "resent": f.Resent},
	}})
}

// Beside notes which address another server gave to a machine that boots through us: its requests come from there. isHeard
// says that a packet of the server itself was captured. The word of a machine alone takes no address away from another
// running boot.
func (t *Timeline) Beside(c pxe.Client, isHeard bool) {
	s, isNew := t.Sessions.Bind(c.MAC, c.Address, isHeard)
	if !isNew {
		return
	}
	detail := c.Address.String() + " from another server, as the machine says"
	if isHeard {
		detail = c.Address.String() + " from another server"
	}
	t.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: t.Now(), Kind: inventory.EventDHCPBeside, SessionID: s.ID, MAC: s.MAC, HostID: s.HostID, Detail: detail,
	}})
}

// BootsAt returns the MAC of the machine that boots at an address.
func (t *Timeline) BootsAt(a netip.Addr) (inventory.MAC, bool) {
	s, ok := t.Sessions.At(a)
	return s.MAC, ok
}

// SessionAt returns the session of the machine at an address. On our own network it falls back to the neighbour table: so it
// finds machines that have their addresses from another server.
func (t *Timeline) SessionAt(a netip.Addr) (inventory.BootSession, bool) {
	if s, ok := t.Sessions.At(a); ok || t.neighbour == nil || !a.IsValid() {
		return s, ok
	}
	mac, ok := t.neighbour(a)
	if !ok {
		return inventory.BootSession{}, false
	}
	t.Sessions.Bind(mac, a, true)
	return t.Sessions.At(a)
}

// begins ends the boots that a host began before at other ports: it has one boot at a time.
func (t *Timeline) begins(s *inventory.BootSession) {
	t.Ledger.EndBoots(s.HostID, inventory.OutcomeAbandoned, fmt.Sprintf("it boots from %s instead", s.MAC), func(b *inventory.BootSession) bool {
		return b.ID != s.ID && b.MAC != s.MAC && b.StartedAt.Before(s.StartedAt)
	})
}
