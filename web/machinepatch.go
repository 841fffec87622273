package web

import (
	"maps"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// MachinePatch changes some fields of a machine; what is absent stays, and lists are given whole.
type MachinePatch struct {
	Profile         *string                 `json:"profile,omitempty" doc:"Of its next installation"`
	ProfileRevision *int                    `json:"profileRevision,omitempty" doc:"0 takes the newest. Another profile unpins it" minimum:"0"`
	Pool            *string                 `json:"pool,omitempty" doc:"Until it has a host"`
	Placement       *inventory.Placement    `json:"placement,omitempty" doc:"As a whole, and until it has a host"`
	Hostname        *string                 `json:"hostname,omitempty" doc:"Of its next installation"`
	Parameters      map[string]*string      `json:"parameters,omitempty" doc:"Parameters to set; null removes one"`
	RootDisk        *inventory.DiskHint     `json:"rootDisk,omitempty" doc:"As a whole"`
	KeepDisks       []inventory.DiskHint    `json:"keepDisks,omitempty" maxItems:"32"`
	Clean           *inventory.CleanMode    `json:"clean,omitempty" enum:"none,quick,full,secure,"`
	ReleaseAfter    *inventory.ReleaseAfter `json:"releaseAfter,omitempty" enum:"fenced,cleaned,"`
	Hooks           []inventory.Hook        `json:"hooks,omitempty" doc:"Those that stay keep whether they are acknowledged" maxItems:"32"`
}

// apply makes the changes of a patch.
func (p *MachinePatch) apply(m *inventory.Machine) {
	if p.Profile != nil && *p.Profile != m.Profile {
		m.Profile, m.ProfileRevision = *p.Profile, 0
	}
	set(&m.ProfileRevision, p.ProfileRevision)
	set(&m.Pool, p.Pool)
	set(&m.Placement, p.Placement)
	set(&m.Hostname, p.Hostname)
	set(&m.RootDisk, p.RootDisk)
	set(&m.Clean, p.Clean)
	set(&m.ReleaseAfter, p.ReleaseAfter)
	if p.KeepDisks != nil {
		m.KeepDisks = p.KeepDisks
	}
	if p.Hooks != nil {
		m.Hooks = acked(m.Hooks, p.Hooks)
	}
	m.Parameters = maps.Clone(m.Parameters)
	for k, v := range p.Parameters {
		if v == nil {
			delete(m.Parameters, k)
			continue
		}
		if m.Parameters == nil {
			m.Parameters = map[string]string{}
		}
		m.Parameters[k] = *v
	}
}

// takeWanted takes over from in all that people say of a machine, but name and owner.
func takeWanted(m *inventory.Machine, in inventory.Machine) {
	m.Profile, m.ProfileRevision, m.Pool, m.Placement, m.Hostname = in.Profile, in.ProfileRevision, in.Pool, in.Placement, in.Hostname
	m.Parameters, m.RootDisk, m.KeepDisks, m.Clean, m.ReleaseAfter = in.Parameters, in.RootDisk, in.KeepDisks, in.Clean, in.ReleaseAfter
	m.Hooks = acked(m.Hooks, in.Hooks)
}

// acked returns hooks with the acknowledgements of those that were there: only their owners acknowledge.
func acked(old, hooks []inventory.Hook) []inventory.Hook {
	out := slices.Clone(hooks)
	for i, h := range out {
		out[i].AckedAt = time.Time{}
		for _, o := range old {
			if o.Step == h.Step && o.Owner == h.Owner {
				out[i].AckedAt = o.AckedAt
			}
		}
	}
	return out
}
