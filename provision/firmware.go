package provision

import (
	"context"
	"fmt"
	"maps"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// saidSecureBoot takes over what a boot loader said of Secure Boot.
func (e *Engine) saidSecureBoot(tx inventory.Tx, h *inventory.Host, said string) error {
	if said == "" || h.Facts[inventory.FactSecureBoot] == said {
		return nil
	}
	h.Facts = withSecureBoot(h.Facts, said)
	return e.edit(tx, h, "Secure Boot is "+said+", as its boot loader says")
}

// withSecureBoot returns facts with what a boot loader said; "" says nothing.
func withSecureBoot(old map[string]string, said string) map[string]string {
	if said == "" {
		return old
	}
	f := maps.Clone(old)
	if f == nil {
		f = map[string]string{}
	}
	f[inventory.FactSecureBoot] = said
	return f
}

// secureBootOf is what an inspection says of Secure Boot; "" where the question makes no sense.
func secureBootOf(f *inventory.FirmwareInfo) string {
	switch {
	case f.Kind != inventory.UEFI && f.Kind != inventory.UEFIHTTP:
		return ""
	case f.IsSecureBoot:
		return pxe.SecureBootOn
	}
	return pxe.SecureBootOff
}

const (
	// refusalsN is how many boots in a row must end behind their loader before it counts as refused.
	refusalsN = 2
	// refusalsAmong is how many of the latest boots are looked at; those that ended before their loader do not count.
	refusalsAmong = 8
)

// loaderRefused reports whether the latest boots of a machine, the newest first, all ended after their loader was sent,
// before that had asked for anything: Secure Boot refuses it, or it does not work there. A boot that ended before its
// loader was there says nothing of it: firmware goes on to its next boot option, and is switched off there.
func loaderRefused(latest []inventory.BootSession) bool {
	n := 0
	for _, s := range latest {
		switch {
		case s.Outcome != inventory.OutcomeAbandoned || s.Firmware == inventory.BIOS:
			return false
		case s.Step == inventory.EventLoaderSent:
			if n++; n == refusalsN {
				return true
			}
		case !endedBeforeLoader(s.Step):
			return false
		}
	}
	return false
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

// learnRefusal looks after a boot that ended behind its loader whether that is refused. If so, the host gets a signed
// chain from now on, where there is one.
func (e *Engine) learnRefusal(tx inventory.Tx, s *inventory.BootSession) error {
	if s.Step != inventory.EventLoaderSent || s.Outcome != inventory.OutcomeAbandoned || s.HostID == "" {
		return nil
	}
	latest, err := tx.ListSessions(s.HostID, inventory.Page{Limit: refusalsAmong})
	if err != nil || !loaderRefused(latest) {
		return err
	}
	h, err := tx.FindHost(s.HostID)
	if err != nil {
		return ignoreNotFound(err)
	}
	if h.Facts[inventory.FactLoaderRefused] != "" || h.Facts[inventory.FactSecureBoot] == pxe.SecureBootOn {
		return nil
	}
	p := e.emptyPlan(s.Subnet)
	was := pxe.ChainFor(pxe.Question{Firmware: s.Firmware, Arch: s.Arch, Loaded: loadedOf(p)})
	now := pxe.ChainFor(pxe.Question{Firmware: s.Firmware, Arch: s.Arch, IsRefused: true, Loaded: loadedOf(p)})
	if now.Loader == "" || now.Loader == was.Loader {
		return nil // nothing else to try: the issue of the stalled boot says what may be wrong
	}
	h.Facts = maps.Clone(h.Facts)
	if h.Facts == nil {
		h.Facts = map[string]string{}
	}
	h.Facts[inventory.FactLoaderRefused] = was.Loader
	e.cfg.Log.Info("boot loader refused", "host", h.Name, "mac", s.MAC, "loader", was.Loader, "next", now.Loader)
	return e.edit(tx, &h, fmt.Sprintf("%s was sent %d times and nothing followed, as with Secure Boot: from now on it gets the signed %s", was.Loader, refusalsN, now.Loader))
}

func loadedOf(p pxe.Plan) pxe.Loaded {
	return pxe.Loaded{Has: p.Loaders, IsSigned: p.Signatures.IsSigned, Trusts: p.Signatures.Trusts}
}

// Initrds returns the RAM disks of a boot in order, and whether its configuration follows them as one more.
func (e *Engine) Initrds(ctx context.Context, id inventory.SessionID, source netip.Addr) (files []inventory.ImageArtefact, hasConfig bool, err error) {
	err = e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		s, err := e.running(tx, id, source)
		if err != nil {
			return err
		}
		if s.Boot != string(pxe.BootImage) && s.Boot != string(pxe.BootAgent) {
			return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", s.Boot, s.Reason)
		}
		i, err := tx.FindImage(s.Image)
		if err != nil {
			return err
		}
		for _, f := range i.Files {
			if f.Role == inventory.RoleInitrd {
				files = append(files, f)
			}
		}
		hasConfig = s.Boot == string(pxe.BootImage) && len(i.Configs) > 0 && i.Configs[0].InitrdPath != "" && s.Config != ""
		return nil
	})
	return files, hasConfig, err
}
