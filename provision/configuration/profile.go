package configuration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// FirstMAC is a MAC of the host; "" for a host that is known by its switch port only.
func FirstMAC(h *inventory.Host) inventory.MAC {
	if len(h.NICs) == 0 {
		return ""
	}
	return h.NICs[0].MAC
}

// BootMAC is the port that a host booted from last, or its first.
func BootMAC(h *inventory.Host) inventory.MAC {
	for _, n := range h.NICs {
		if n.IsBoot {
			return n.MAC
		}
	}
	return FirstMAC(h)
}

// ProfileOf returns the profile of a host: that of the machine that has it, else the one pinned to it or selected.
func (c *Configurer) ProfileOf(tx inventory.Tx, h *inventory.Host) (inventory.Profile, *inventory.Error, error) {
	pin := *h
	var m inventory.Machine
	if h.Machine != "" {
		var err error
		if m, err = tx.FindMachine(h.Machine); err != nil {
			return inventory.Profile{}, nil, fmt.Errorf("read machine of %s: %w", h.Name, err)
		}
		pin.Profile, pin.ProfileRevision = m.Profile, m.ProfileRevision
	}
	profiles, err := tx.Profiles().List(inventory.Page{})
	if err != nil {
		return inventory.Profile{}, nil, fmt.Errorf("read profiles: %w", err)
	}
	profile, problem := SelectProfile(&pin, profiles)
	if problem != nil {
		return profile, problem, nil
	}
	if pin.ProfileRevision != 0 && pin.Profile == profile.Name {
		if problem := pinned(tx, &pin, &profile); problem != nil {
			return profile, problem, nil
		}
	}
	if len(m.Parameters) > 0 {
		all := maps.Clone(profile.Parameters)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, m.Parameters)
		profile.Parameters = all
	}
	profile.Image = cmp.Or(m.Image, profile.Image)
	profile.KernelArgs = append(slices.Clone(profile.KernelArgs), m.KernelArgs...)
	return profile, nil, nil
}

// pinned replaces a profile by the revision of it that the host is pinned to.
func pinned(tx inventory.Tx, h *inventory.Host, profile *inventory.Profile) *inventory.Error {
	rev, err := tx.FindRevision(inventory.RevisionOfProfile, h.Profile, h.ProfileRevision)
	if err == nil {
		err = json.Unmarshal(rev.Body, profile)
	}
	if err != nil {
		return inventory.Errorf(inventory.Conflict, "revision %d of profile %s, pinned to this host, cannot be read: %s", h.ProfileRevision, h.Profile, ledger.PublicMessage(err)).
			WithHint("choose another with: slipway host pin %s REVISION", h.Name)
	}
	profile.Revision = h.ProfileRevision
	return nil
}

// SelectProfile returns the profile a host boots: the one pinned to it, else the one with the highest priority among
// those whose selector matches. Two with the same priority are a Conflict that names both; none is NotFound. The
// answer depends on nothing but its arguments.
func SelectProfile(h *inventory.Host, profiles []inventory.Profile) (inventory.Profile, *inventory.Error) {
	var best, tied inventory.Profile
	for _, p := range profiles {
		if h.Profile != "" {
			if p.Name == h.Profile {
				return p, nil
			}
			continue
		}
		sel, err := inventory.ParseSelector(p.Selector)
		if err != nil || !sel.Matches(h) {
			continue
		}
		switch {
		case best.Name == "" || p.Priority > best.Priority:
			best, tied = p, inventory.Profile{}
		case p.Priority == best.Priority:
			tied = p
		}
	}
	switch {
	case h.Profile != "":
		return best, inventory.Errorf(inventory.NotFound, "profile %s, pinned to this host, does not exist", h.Profile).
			WithHint("choose another with: slipway host set %s --profile NAME", h.Name)
	case tied.Name != "":
		return best, inventory.Errorf(inventory.Conflict, "profiles %s and %s both match with priority %d", best.Name, tied.Name, best.Priority).
			WithHint("give one of them a higher priority, or pin one: slipway host set %s --profile %s", h.Name, best.Name)
	case best.Name == "":
		return best, inventory.Errorf(inventory.NotFound, "no profile matches this host").
			WithHint("pin one with: slipway host set %s --profile NAME", h.Name)
	}
	return best, nil
}
