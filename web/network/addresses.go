package network

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type addressQuery struct {
	rest.Page
	Subnet  string `query:"subnet" doc:"Only those of this subnet" maxLength:"63"`
	Machine string `query:"machine" doc:"Only those of this machine" maxLength:"63"`
	Profile string `query:"profile" doc:"Only those of the machines of this profile" maxLength:"63"`
	rest.ByHost
}

type putAddressInput struct {
	DryRun  bool   `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
	Address string `path:"address" maxLength:"45"`
	Body    struct {
		Machine string `json:"machine,omitempty" maxLength:"63" doc:"The machine that gets it"`
		Host    string `json:"host,omitempty" maxLength:"255" doc:"Or a host that no machine has: its name, id or MAC"`
	}
}

type deleteAddressInput struct {
	DryRun  bool   `query:"dryRun" doc:"Check everything, but change nothing"`
	Address string `path:"address" maxLength:"45"`
}

// addAddresses registers the operations on static addresses.
func (s *Server) addAddresses() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/addresses", ID: "list-addresses", Scope: rest.OfPools, Tag: "addresses", Errors: []int{http.StatusNotFound},
		AtAny:   true,
		Summary: "List the static addresses of machines", About: "Those that are kept for them out of the static ranges of subnets, and those that their configurations name.",
	}, s.listAddresses)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/addresses/{address}", ID: "put-address", Scope: rest.OfPools, Tag: "addresses", Dry: true, Result: wire.Address{},
		Summary: "Keep an address for a machine, in place of the one that it has in that subnet", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "The machine gets it with its next installation. An address that somebody or something has is refused.",
	}, s.putAddress)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/addresses/{address}", ID: "delete-address", Scope: rest.OfPools, Tag: "addresses", Dry: true, Status: http.StatusNoContent,
		Summary: "Free an address", Errors: []int{http.StatusNotFound, http.StatusConflict}, About: "Refused while the configuration of its machine asks for one of that subnet.",
	}, s.deleteAddress)
}

func (s *Server) listAddresses(req *rest.Request, in *addressQuery) (out *rest.Listed[wire.Address], err error) {
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		f := inventory.AddressFilter{Subnet: in.Subnet}
		switch {
		case in.Machine != "":
			m, err := tx.FindMachine(in.Machine)
			if err != nil {
				return err
			}
			f.Owner = inventory.Holder{MachineUID: m.UID}.Key()
		case in.Host != "":
			h, err := rest.FindHost(tx, in.Host)
			if err != nil {
				return err
			}
			if f.Owner = (inventory.Holder{HostID: h.ID}).Key(); h.Machine != "" {
				m, err := tx.FindMachine(h.Machine)
				if err != nil {
					return err
				}
				f.Owner = inventory.Holder{MachineUID: m.UID}.Key()
			}
		}
		rows, err := addressesOf(tx, f)
		if err != nil {
			return err
		}
		if in.Profile != "" {
			machines, err := tx.ListMachines(inventory.MachineFilter{Profile: in.Profile}, inventory.Page{})
			if err != nil {
				return err
			}
			rows = slices.DeleteFunc(rows, func(a wire.Address) bool {
				return !slices.ContainsFunc(machines, func(m inventory.Machine) bool { return m.Name == a.Machine })
			})
		}
		if after, err := netip.ParseAddr(in.After); err == nil {
			rows = slices.DeleteFunc(rows, func(a wire.Address) bool { return a.Address.Compare(after) <= 0 })
		}
		out = rest.PageOf(rows[:min(len(rows), in.Limit+1)], in.Limit, func(a wire.Address) string { return a.Address.String() })
		return nil
	})
	return out, err
}

// addressesOf joins what is kept with what configurations name, in order of the addresses.
func addressesOf(tx inventory.Tx, f inventory.AddressFilter) ([]wire.Address, error) {
	kept, err := tx.ListAllocations(f)
	if err != nil {
		return nil, err
	}
	rows := []wire.Address{}
	for _, a := range kept {
		row := wire.Address{Address: a.Address, Subnet: a.Subnet, Machine: a.Machine, HostID: a.HostID, Host: a.Host, From: "subnet", CreatedAt: a.CreatedAt}
		if a.IsFixed {
			row.From = "person"
		}
		if a.Note != "" {
			row.From, row.Source = "left", a.Note
		}
		rows = append(rows, row)
	}
	held, err := tx.ListHoldings(f)
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, h := range held {
		if h.Kind != inventory.HoldsAddress {
			continue
		}
		if n[h.Value]++; h.Subnet != "" {
			continue // it is among those that are kept
		}
		if a, err := netip.ParseAddr(h.Value); err == nil {
			rows = append(rows, wire.Address{Address: a, Machine: h.Machine, HostID: h.HostID, Host: h.Host, From: "configuration", Source: h.Source})
		}
	}
	for i := range rows {
		rows[i].IsTwice = n[rows[i].Address.String()] > 1
	}
	slices.SortStableFunc(rows, func(a, b wire.Address) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Machine, b.Machine))
	})
	return rows, nil
}

func (s *Server) putAddress(req *rest.Request, in *putAddressInput) (*rest.Written, error) {
	a, err := parseAddr(in.Address)
	if err != nil {
		return nil, err
	}
	if (in.Body.Machine == "") == (in.Body.Host == "") {
		return nil, inventory.Errorf(inventory.Invalid, "an address is kept for one machine or host").At("machine").WithHint("name either machine or host")
	}
	var kept inventory.Allocation
	err = s.rest.Write(req, in.DryRun, func(tx inventory.Tx) error {
		m, h, err := holderOf(tx, in.Body.Machine, in.Body.Host)
		if err != nil {
			return err
		}
		if kept, err = s.cfg.Addresses.FixAddress(tx, m, h, a.Unmap()); err != nil {
			return err
		}
		req.Trail.Concern(kept.HostID)
		rest.Edited(req, "address", a.String(), inventory.AuditUpdate, nil, kept, 0)
		return s.rest.Changed(req, tx, "subnet/"+kept.Subnet, "address "+a.String()+" kept for "+kept.Holder.String())
	})
	if err != nil {
		return nil, err
	}
	row := wire.Address{Address: kept.Address, Subnet: kept.Subnet, Machine: kept.Machine, HostID: kept.HostID, Host: kept.Host, From: "person", CreatedAt: kept.CreatedAt}
	if in.DryRun {
		return &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(nil, row), Result: row}}, nil
	}
	return &rest.Written{Status: http.StatusOK, Body: row}, nil
}

// holderOf finds the machine, and the host that it has, or a host that no machine has.
func holderOf(tx inventory.Tx, machine, host string) (*inventory.Machine, *inventory.Host, error) {
	if machine == "" {
		h, err := rest.FindHost(tx, host)
		if err != nil || h.Machine == "" {
			return nil, &h, err
		}
		machine = h.Machine
	}
	m, err := tx.FindMachine(machine)
	if err != nil || m.HostID == "" {
		return &m, nil, err
	}
	h, err := tx.FindHost(m.HostID)
	return &m, &h, err
}

func (s *Server) deleteAddress(req *rest.Request, in *deleteAddressInput) (*rest.Written, error) {
	a, err := parseAddr(in.Address)
	if err != nil {
		return nil, err
	}
	var kept inventory.Allocation
	err = s.rest.Write(req, in.DryRun, func(tx inventory.Tx) error {
		if kept, err = tx.FindAllocation(a); err != nil {
			return err
		}
		if err := s.cfg.Addresses.FreeAddress(tx, a); err != nil {
			return err
		}
		req.Trail.Concern(kept.HostID)
		rest.Edited(req, "address", a.String(), inventory.AuditDelete, kept, nil, 0)
		return s.rest.Changed(req, tx, "subnet/"+kept.Subnet, "address "+a.String()+" of "+kept.Holder.String()+" freed")
	})
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		w := &rest.Written{Status: http.StatusOK, Body: rest.Diff{IsDryRun: true, Changes: rest.Compare(kept, nil)}}
		return w.Does(foresight.Delete(foresight.Thing{Noun: "address", Name: kept.Address.String()})), nil
	}
	return &rest.Written{Status: http.StatusNoContent}, nil
}
