package hosts

import (
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// HostPatch changes some fields of a host; an absent field stays. It works like a JSON merge patch (RFC 7396).
type HostPatch struct {
	Name         *string             `json:"name,omitempty"`
	Profile      *string             `json:"profile,omitempty" doc:"Pins a profile; empty lets the selectors decide"`
	Revision     *int                `json:"profileRevision,omitempty" doc:"Pins a revision of the profile; 0 follows the newest. Another profile unpins it" minimum:"0"`
	DiskBoot     *inventory.DiskBoot `json:"diskBoot,omitempty" doc:"How it is sent to its own disk; empty asks the quirk table" enum:"no-offer,exit,sanboot,"`
	Port         *string             `json:"port,omitempty" doc:"Pins it to a switch port, CIRCUIT@SWITCH: the machine there is this host, and it boots nowhere else; empty unpins"`
	IsAdopted    *bool               `json:"isAdopted,omitempty" doc:"Its operating system is not ours"`
	UUID         *string             `json:"uuid,omitempty"`
	Serial       *string             `json:"serial,omitempty"`
	AssetTag     *string             `json:"assetTag,omitempty"`
	Manufacturer *string             `json:"manufacturer,omitempty"`
	Product      *string             `json:"product,omitempty"`
	MACs         []inventory.MAC     `json:"macs,omitempty" doc:"All MACs it has; those that it keeps keep what is known of them" maxItems:"64"`
	Place        *PlacePatch         `json:"place,omitempty"`
	Labels       map[string]*string  `json:"labels,omitempty" doc:"Labels to set; null removes one"`

	IsCordoned *bool `json:"isCordoned,omitempty" doc:"No machine claims it; all else goes on"`
	IsRetained *bool `json:"isRetained,omitempty" doc:"When its machine goes, its disks stay as they are, and it waits for a person"`

	Taints    []inventory.Taint    `json:"taints,omitempty" doc:"All of them: they keep away machines that do not tolerate them" maxItems:"16"`
	RootDisk  *inventory.DiskHint  `json:"rootDisk,omitempty" doc:"As a whole: the disk that operating systems are written to"`
	KeepDisks []inventory.DiskHint `json:"keepDisks,omitempty" doc:"All of them: they are never wiped and never chosen" maxItems:"32"`
}

// PlacePatch changes parts of a place.
type PlacePatch struct {
	Site *string `json:"site,omitempty"`
	Row  *string `json:"row,omitempty"`
	Rack *string `json:"rack,omitempty"`
	Unit *int    `json:"unit,omitempty" minimum:"0" maximum:"100"`

	Height *int            `json:"height,omitempty" doc:"How many units it fills; 0 is one" minimum:"0" maximum:"100"`
	Face   *inventory.Face `json:"face,omitempty" doc:"The side of the rack it is mounted on; empty fills the depth" enum:"front,rear,"`
}

// apply makes the changes of a patch.
func (s *Server) apply(h *inventory.Host, p HostPatch) error {
	rest.Set(&h.Name, p.Name)
	if p.Profile != nil && *p.Profile != h.Profile {
		h.Profile, h.ProfileRevision = *p.Profile, 0
	}
	rest.Set(&h.ProfileRevision, p.Revision)
	rest.Set(&h.DiskBoot, p.DiskBoot)
	rest.Set(&h.Port, p.Port)
	rest.Set(&h.IsAdopted, p.IsAdopted)
	rest.Set(&h.IsCordoned, p.IsCordoned)
	rest.Set(&h.IsRetained, p.IsRetained)
	rest.Set(&h.UUID, p.UUID)
	rest.Set(&h.Serial, p.Serial)
	rest.Set(&h.AssetTag, p.AssetTag)
	rest.Set(&h.Manufacturer, p.Manufacturer)
	rest.Set(&h.Product, p.Product)
	rest.Set(&h.RootDisk, p.RootDisk)
	if p.Taints != nil {
		h.Taints = p.Taints
	}
	if p.KeepDisks != nil {
		h.KeepDisks = p.KeepDisks
	}
	if p.Place != nil {
		rest.Set(&h.Place.Site, p.Place.Site)
		rest.Set(&h.Place.Row, p.Place.Row)
		rest.Set(&h.Place.Rack, p.Place.Rack)
		rest.Set(&h.Place.Unit, p.Place.Unit)
		rest.Set(&h.Place.Height, p.Place.Height)
		rest.Set(&h.Place.Face, p.Place.Face)
	}
	for k, v := range p.Labels {
		if v == nil {
			delete(h.Labels, k)
			continue
		}
		if h.Labels == nil {
			h.Labels = map[string]string{}
		}
		h.Labels[k] = *v
	}
	if len(p.MACs) == 0 {
		return nil
	}
	var nics []inventory.NIC
	for _, m := range p.MACs {
		nics = append(nics, inventory.NIC{MAC: m})
	}
	return s.replaceNICs(h, nics)
}

// replace takes over from in all that an admin says of a host.
func (s *Server) replace(h *inventory.Host, in inventory.Host) error {
	h.Name, h.Profile, h.ProfileRevision, h.DiskBoot, h.IsAdopted = in.Name, in.Profile, in.ProfileRevision, in.DiskBoot, in.IsAdopted
	h.UUID, h.Serial, h.AssetTag, h.Manufacturer, h.Product = in.UUID, in.Serial, in.AssetTag, in.Manufacturer, in.Product
	h.Place, h.Labels, h.Port = in.Place, in.Labels, in.Port
	h.Taints, h.RootDisk, h.KeepDisks = in.Taints, in.RootDisk, in.KeepDisks
	h.IsCordoned, h.IsRetained = in.IsCordoned, in.IsRetained
	return s.replaceNICs(h, in.NICs)
}

// replaceNICs gives a host other NICs. What it knows of those it keeps stays: vendor, name unless given, which booted.
func (s *Server) replaceNICs(h *inventory.Host, nics []inventory.NIC) error {
	var out []inventory.NIC
	for _, n := range nics {
		mac, err := inventory.ParseMAC(string(n.MAC))
		if err != nil {
			return err
		}
		kept := inventory.NIC{MAC: mac, Name: n.Name}
		if i := slices.IndexFunc(h.NICs, func(old inventory.NIC) bool { return old.MAC == mac }); i >= 0 {
			kept = h.NICs[i]
			if n.Name != "" {
				kept.Name = n.Name
			}
		} else if s.cfg.Vendor != nil {
			kept.Vendor = s.cfg.Vendor(mac)
		}
		out = append(out, kept)
	}
	h.NICs = out
	return nil
}
