package machines

import (
	"maps"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// MachinePatch changes some fields of a machine; an absent field stays, and a list is given as a whole.
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
	Hooks           []inventory.Hook        `json:"hooks,omitempty" doc:"Those that stay keep whether they are acknowledged; those that go count as acknowledged" maxItems:"32"`
	Image           *string                 `json:"image,omitempty" doc:"Of its next installation, instead of the profile's"`
	KernelArgs      []string                `json:"kernelArgs,omitempty" doc:"All of them" maxItems:"64"`
	Config          *string                 `json:"config,omitempty" doc:"Its own layer of configuration, as YAML" maxLength:"1048576"`
	BootstrapFrom   *string                 `json:"bootstrapFrom,omitempty" doc:"Where its bootstrap data come from when it boots, in words" maxLength:"800"`
	Drain           *inventory.Drain        `json:"drain,omitempty" doc:"As a whole: how its Kubernetes node is emptied"`
}

// apply makes the changes of a patch.
func (p *MachinePatch) apply(m *inventory.Machine) {
	if p.Profile != nil && *p.Profile != m.Profile {
		m.Profile, m.ProfileRevision = *p.Profile, 0
	}
	rest.Set(&m.ProfileRevision, p.ProfileRevision)
	rest.Set(&m.Pool, p.Pool)
	rest.Set(&m.Placement, p.Placement)
	rest.Set(&m.Hostname, p.Hostname)
	rest.Set(&m.RootDisk, p.RootDisk)
	rest.Set(&m.Clean, p.Clean)
	rest.Set(&m.ReleaseAfter, p.ReleaseAfter)
	if p.KeepDisks != nil {
		m.KeepDisks = p.KeepDisks
	}
	if p.Hooks != nil {
		m.Hooks = inventory.KeepAcks(m.Hooks, p.Hooks)
	}
	rest.Set(&m.Image, p.Image)
	rest.Set(&m.Config, p.Config)
	rest.Set(&m.BootstrapFrom, p.BootstrapFrom)
	rest.Set(&m.Drain, p.Drain)
	if p.KernelArgs != nil {
		m.KernelArgs = p.KernelArgs
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
