package hosts

import (
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// apply makes the changes of a patch.
func (s *Server) apply(h *inventory.Host, p wire.HostPatch) error {
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
