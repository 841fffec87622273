package boot

import (
	"fmt"
	"log/slog"
	"maps"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// learnSecureBoot takes over what a boot loader said of Secure Boot.
func (r *Registry) learnSecureBoot(tx inventory.Tx, h *inventory.Host, said string) error {
	if !isSecureBootNew(h, said) {
		return nil
	}
	// Maps of a host are shared with its copies, so a change begins with a copy.
	h.Facts = maps.Clone(h.Facts)
	if h.Facts == nil {
		h.Facts = map[string]string{}
	}
	h.Facts[inventory.FactSecureBoot] = said
	return r.Ledger.Edit(tx, h, "Secure Boot is "+said+", as its boot loader says")
}

func isSecureBootNew(h *inventory.Host, said string) bool {
	return said != "" && h.Facts[inventory.FactSecureBoot] != said
}

const (
	// refusalsN is how many boots in a row must end behind their loader before it counts as refused.
	refusalsN = 2
	// refusalsAmong is how many of the latest boots are looked at; those that ended before their loader do not count.
	refusalsAmong = 8
)

// try is a boot with the loader that its firmware was sent, "" for none.
type try struct {
	inventory.BootSession
	loader string
}

// loaderRefused returns the loader behind which the latest boots of a machine, the newest first, all ended before it had
// asked for anything: Secure Boot refuses it, or it does not work there. A boot that ended before its loader was there says
// nothing of it: firmware goes on to its next boot option, and is switched off there.
func loaderRefused(latest []try) (loader string, isRefused bool) {
	n := 0
	for _, s := range latest {
		switch {
		// Any other end shows that the loader ran, or that this firmware has no Secure Boot at all.
		case s.Outcome != inventory.OutcomeAbandoned || s.Firmware == inventory.BIOS:
			return "", false
		case s.Step == inventory.EventLoaderSent:
			// Two different loaders say nothing of either.
			if n > 0 && s.loader != loader {
				return "", false
			}
			loader = s.loader
			if n++; n == refusalsN {
				return loader, true
			}
		case !endedBeforeLoader(s.Step):
			return "", false
		}
	}
	return "", false
}

// endedBeforeLoader reports whether a boot that came this far did not have its loader yet.
func endedBeforeLoader(step string) bool {
	switch step {
	case inventory.EventSessionStarted, inventory.EventDHCPDiscover, inventory.EventDHCPOffer, inventory.EventDHCPRequest,
		inventory.EventDHCPAck, inventory.EventLoaderStarted:
		return true
	}
	return false
}

// Verdicts on the unsigned loader of a host.
type verdict int

const (
	asBefore verdict = iota
	isRefused
	isNoBetter // the signed chain is refused as well: it was not Secure Boot, and the two are tried in turn
	worksAfterAll
)

// judgeLoader says what the latest boots of a machine, the newest first, mean for a host of which these facts are known, and
// by which loader. unsigned and signed are those that it gets by either chain. That Secure Boot was off may have changed since
// somebody said so; only "on" counts here.
func judgeLoader(latest []try, facts map[string]string, unsigned, signed string) (v verdict, by string) {
	if len(latest) == 0 || facts[inventory.FactSecureBoot] == pxe.SecureBootOn {
		return asBefore, ""
	}
	refused := facts[inventory.FactLoaderRefused]
	if latest[0].loader == refused && refused != "" && session.StepIndex(latest[0].Step) > session.StepIndex(inventory.EventLoaderSent) {
		return worksAfterAll, refused
	}
	switch loader, ok := loaderRefused(latest); {
	case !ok || loader == refused:
	case refused != "":
		return isNoBetter, loader
	case loader == unsigned && signed != "" && signed != unsigned: // else there is nothing else to try
		return isRefused, loader
	}
	return asBefore, ""
}

// Loaders learns which boot loaders the firmware of hosts refuses.
type Loaders struct {
	log     *slog.Logger
	ledger  *ledger.Ledger
	planner *Planner
}

// LearnLoader looks after a boot whether the unsigned loader of its host is refused. If so, the host gets a signed chain from
// now on, where there is one, until that turns out to be no better.
func (l *Loaders) LearnLoader(tx inventory.Tx, s *inventory.BootSession) error {
	// Without a host nothing can be remembered, and BIOS has no Secure Boot.
	if s.HostID == "" || s.Firmware == inventory.BIOS || session.StepIndex(s.Step) < session.StepIndex(inventory.EventLoaderSent) {
		return nil
	}
	h, err := tx.FindHost(s.HostID)
	if err != nil {
		return ledger.IgnoreNotFound(err)
	}
	refused := h.Facts[inventory.FactLoaderRefused]
	if s.Step != inventory.EventLoaderSent && refused == "" {
		return nil
	}
	// One failure may be a cable. Several boots are read, and must agree.
	latest, err := latestTries(tx, s.HostID)
	if err != nil {
		return err
	}
	p := l.planner.empty(s.Subnet)
	was := pxe.ChainFor(pxe.Question{Firmware: s.Firmware, Arch: s.Arch, Loaded: loadedOf(p)}).Loader
	signed := pxe.ChainFor(pxe.Question{Firmware: s.Firmware, Arch: s.Arch, IsRefused: true, Loaded: loadedOf(p)}).Loader
	v, by := judgeLoader(latest, h.Facts, was, signed)
	detail, said := "", "boot loader refused"
	switch v {
	case asBefore:
		return nil
	case isRefused:
		refused, detail = by, fmt.Sprintf("%s was sent %d times and nothing followed, as with Secure Boot: from now on it gets the signed %s", by, refusalsN, signed)
	case isNoBetter:
		refused, detail = "", fmt.Sprintf("%s was sent %d times and nothing followed either: from now on it gets %s again", by, refusalsN, was)
	case worksAfterAll:
		refused, detail, said = "", by+" works after all: from now on it gets that again", "boot loader works after all"
	}
	l.log.Info(said, "host", h.Name, "mac", s.MAC, "loader", by)
	h.Facts = maps.Clone(h.Facts)
	if h.Facts == nil {
		h.Facts = map[string]string{}
	}
	h.Facts[inventory.FactLoaderRefused] = refused
	if refused == "" {
		delete(h.Facts, inventory.FactLoaderRefused)
	}
	return l.ledger.Edit(tx, &h, detail)
}

// latestTries returns the latest boots of a host, the newest first, with the loaders that they were sent.
func latestTries(tx inventory.Tx, id inventory.HostID) ([]try, error) {
	sessions, err := tx.ListSessions(id, inventory.Page{Limit: refusalsAmong})
	if err != nil {
		return nil, err
	}
	var all []try
	// One query for each boot, and at most eight boots.
	for _, s := range sessions {
		t := try{BootSession: s}
		sent, err := tx.ListEvents(inventory.EventFilter{SessionID: s.ID, Kind: inventory.EventLoaderSent}, 0, 1)
		if err != nil {
			return nil, err
		}
		if len(sent) > 0 {
			if fields, ok := sent[0].Data.(map[string]any); ok {
				t.loader = fmt.Sprint(fields["name"])
			}
		}
		all = append(all, t)
	}
	return all, nil
}

func loadedOf(p pxe.Plan) pxe.Loaded {
	return pxe.Loaded{Has: p.Loaders, IsSigned: p.Signatures.IsSigned, Trusts: p.Signatures.Trusts, Signers: p.Signatures.SignersOf}
}
