package hosts

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// HostRow is a host in a list of many: in few words, with what other tables know of it. Empty fields are left out.
type HostRow struct {
	ID           inventory.HostID     `json:"id"`
	Name         string               `json:"name"`
	State        inventory.State      `json:"state"`
	StateReason  string               `json:"stateReason,omitempty"`
	StateSinceAt time.Time            `json:"stateSinceAt,omitzero"`
	Flags        []string             `json:"flags,omitempty" doc:"Of maintenance, protected, adopted, cordoned, retained, armed, dirty"`
	Serial       string               `json:"serial,omitempty"`
	AssetTag     string               `json:"assetTag,omitempty"`
	UUID         string               `json:"uuid,omitempty"`
	Manufacturer string               `json:"manufacturer,omitempty"`
	Product      string               `json:"product,omitempty"`
	Arch         inventory.Arch       `json:"arch,omitempty"`
	Firmware     inventory.Firmware   `json:"firmware,omitempty"`
	MemoryMiB    int                  `json:"memoryMiB,omitempty"`
	CPU          string               `json:"cpu,omitempty"`
	Place        inventory.Place      `json:"place"`
	Labels       map[string]string    `json:"labels,omitempty"`
	Profile      string               `json:"profile,omitempty"`
	Machine      string               `json:"machine,omitempty"`
	Pool         string               `json:"pool,omitempty" doc:"Of its machine"`
	MACs         []inventory.MAC      `json:"macs,omitempty" doc:"The one it booted from last is the first"`
	Vendor       string               `json:"vendor,omitempty" doc:"Who made that network card"`
	Address      string               `json:"address,omitempty" doc:"Leased last to one of its ports"`
	Switch       string               `json:"switch,omitempty" doc:"Switch and port at the other end of that card, as the inspection heard it"`
	Driver       inventory.BMCDriver  `json:"driver,omitempty" doc:"How it is powered"`
	Power        inventory.PowerState `json:"power,omitempty"`
	Issues       []string             `json:"issues,omitempty" doc:"Types of its open issues"`
	LastSeenAt   time.Time            `json:"lastSeenAt,omitzero"`
	CreatedAt    time.Time            `json:"createdAt,omitzero"`
	Version      int64                `json:"version"`
}

// idsMax bounds how many hosts are asked for by id at once.
const idsMax = 200

type rowQuery struct {
	After string `query:"after" doc:"Only what comes after this name: the next of the page before" maxLength:"255"`
	Limit int    `query:"limit" doc:"Most items in the answer" default:"500" minimum:"1" maximum:"2000"`
	IDs   string `query:"ids" doc:"Only the hosts with these ids, separated by commas, at most 200; those that are gone are left out" maxLength:"8000"`
}

// addHostRows registers the list of hosts that screens are made of.
func (s *Server) addHostRows() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hostrows", ID: "list-hostrows", AtAny: true, Tag: "hosts", Scope: rest.OfPools,
		Summary: "List hosts in few words",
		About: "In order of their names, each with what other tables know of it: power, pool, address, open issues. To follow many hosts, " +
			"read the list once, and then by ids the hosts that events name.",
	}, func(req *rest.Request, in *rowQuery) (out *rest.Listed[HostRow], err error) {
		err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
			hosts, err := rowHosts(tx, *in)
			if err != nil {
				return err
			}
			out = &rest.Listed[HostRow]{Body: rest.List[HostRow]{Items: []HostRow{}}}
			if in.IDs == "" && len(hosts) > in.Limit {
				hosts = hosts[:in.Limit]
				out.Body.Next = hosts[in.Limit-1].Name
			}
			out.Body.Items, err = hostRows(tx, hosts)
			return err
		})
		return out, err
	})
}

// rowHosts finds the hosts of a query, up to one more than its limit.
func rowHosts(tx inventory.Tx, in rowQuery) (hosts []inventory.Host, err error) {
	if in.IDs == "" {
		return tx.ListHosts(inventory.HostFilter{}, inventory.Page{After: in.After, Limit: in.Limit + 1})
	}
	ids := strings.Split(in.IDs, ",")
	if len(ids) > idsMax {
		return nil, inventory.Errorf(inventory.Invalid, "%d ids are asked for; at most %d are allowed", len(ids), idsMax)
	}
	for _, id := range ids {
		h, err := tx.FindHost(inventory.HostID(id))
		if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) {
			continue
		}
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// hostRows makes rows of hosts.
func hostRows(tx inventory.Tx, hosts []inventory.Host) ([]HostRow, error) {
	ids := make([]inventory.HostID, len(hosts))
	for i := range hosts {
		ids[i] = hosts[i].ID
	}
	extras, err := tx.HostExtras(ids)
	if err != nil {
		return nil, err
	}
	open, err := tx.ListIssues(false, "")
	if err != nil {
		return nil, err
	}
	issues := map[inventory.HostID][]string{}
	for _, i := range open {
		for _, h := range i.HostIDs {
			if !slices.Contains(issues[h], i.Type) {
				issues[h] = append(issues[h], i.Type)
			}
		}
	}
	rows := make([]HostRow, len(hosts))
	for i := range hosts {
		rows[i] = hostRow(&hosts[i], extras[ids[i]])
		rows[i].Issues = issues[ids[i]]
	}
	return rows, nil
}

func hostRow(h *inventory.Host, x inventory.HostExtra) HostRow {
	r := HostRow{
		ID: h.ID, Name: h.Name, State: h.State, StateReason: inventory.Clean(h.StateReason, 200), StateSinceAt: h.StateSinceAt, Flags: flagsOf(h),
		Serial: h.Serial, AssetTag: h.AssetTag, UUID: h.UUID, Manufacturer: h.Manufacturer, Product: h.Product, Arch: h.Arch, Firmware: h.Firmware,
		MemoryMiB: h.MemoryMiB, CPU: h.Facts["cpu"], Place: h.Place, Labels: h.Labels, Profile: h.Profile, Machine: h.Machine, Pool: x.Pool,
		Switch: h.Facts["switch"], Driver: x.Driver, Power: x.Power, LastSeenAt: h.LastSeenAt, CreatedAt: h.CreatedAt, Version: h.Version,
	}
	if h.Machine != "" && r.Pool == "" {
		r.Pool = inventory.DefaultPool
	}
	if x.Address != (netip.Addr{}) {
		r.Address = x.Address.String()
	}
	for _, n := range h.NICs {
		if n.IsBoot {
			r.MACs, r.Vendor = append([]inventory.MAC{n.MAC}, r.MACs...), n.Vendor
			continue
		}
		r.MACs = append(r.MACs, n.MAC)
	}
	if r.Vendor == "" && len(h.NICs) > 0 {
		r.Vendor = h.NICs[0].Vendor
	}
	return r
}

// flagsOf names what is special about a host.
func flagsOf(h *inventory.Host) (flags []string) {
	for _, f := range []struct {
		is   bool
		name string
	}{
		{h.InMaintenance, "maintenance"},
		{h.IsProtected, "protected"},
		{h.IsAdopted, "adopted"},
		{h.IsCordoned, "cordoned"},
		{h.IsRetained, "retained"},
		{h.IsArmed, "armed"},
		{h.IsDirty && h.ClaimID == "", "dirty"},
	} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	return flags
}
