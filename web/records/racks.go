package records

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/elevation"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
)

// Rack is a rack with its hosts. Racks that nobody has said anything about are there as soon as a host is placed in them;
// their version is 0.
type Rack struct {
	inventory.Rack
	ID     string                 `json:"id" readOnly:"true" doc:"NAME, or SITE/ROW/NAME; a slash in a part is %2F"`
	HostN  int                    `json:"hostN" readOnly:"true" doc:"How many hosts are placed in it"`
	Faults []elevation.PlaceFault `json:"faults" readOnly:"true" doc:"Places that cannot be so"`
}

// rackOps answers the requests about racks and cables.
type rackOps struct{ rest *rest.Frame }

// addRacks registers the operations on racks and cables.
func addRacks(f *rest.Frame) {
	s := rackOps{f}
	now := f.Now
	rest.AddNoun(f, rest.Noun[Rack]{
		Singular: "rack", Plural: "racks", Scope: rest.OfPools, Article: "a",
		Name:    func(r Rack) string { return r.Rack.ID() },
		Version: func(r Rack) int64 { return r.Version },
		Prepare: prepareRack,
		Find:    findRack,
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[Rack], error) {
			all, err := listRacks(tx)
			return rest.Cut(all, p, func(r Rack) string { return r.ID }), err
		},
		Create: func(tx inventory.Tx, in *Rack) error { return tx.Racks().Create(&in.Rack, now()) },
		Update: func(tx inventory.Tx, in *Rack) error {
			if in.Version == 0 {
				return tx.Racks().Create(&in.Rack, now())
			}
			return tx.Racks().Update(&in.Rack, now())
		},
		Counts: func(_ inventory.Tx, r Rack) (map[string]int, error) { return map[string]int{"host": r.HostN}, nil },
		Remove: func(tx inventory.Tx, id string) error {
			_, err := tx.Racks().Find(id)
			if inventory.IsKind(err, inventory.NotFound) {
				return inventory.Errorf(inventory.NotFound, "rack %s has no description: it exists because hosts are placed in it", inventory.Clean(id, 80)).
					WithHint("it goes when the last of them is placed elsewhere: slipway host place")
			}
			if err != nil {
				return err
			}
			return tx.Racks().Delete(id)
		},
	})
	rest.Register(f, rest.Operation{
		Method: http.MethodGet, Path: "/racks/{name}/elevation.svg", ID: "draw-rack", Scope: rest.OfPools, Tag: "racks", Plain: "image/svg+xml",
		AtAny:   true,
		Summary: "Draw a rack", Errors: []int{http.StatusNotFound}, About: "One face of it with its hosts and their states, for screens, pages and paper.",
	}, s.drawRack)
	rest.Register(f, rest.Operation{
		Method: http.MethodGet, Path: "/cabling", ID: "get-cabling", AtAny: true, Scope: rest.OfPools, Tag: "racks",
		Summary: "Show the cables that LLDP has proved",
		Errors:  []int{http.StatusNotFound, http.StatusBadRequest},
		About: "From the newest inspection of each host: its ports, the switch ports at their other ends, and what cannot be so, is not as " +
			"it was, or is not as the racks say. Of one rack, it is compared with the other racks of its site.",
	}, s.cabling)
}

// prepareRack takes what is known of a rack from its id.
func prepareRack(tx inventory.Tx, in *Rack, id string, old *Rack) error {
	if id != "" {
		site, row, name, err := inventory.ParseRackID(id)
		if err != nil {
			return err
		}
		if in.Site == "" && in.Row == "" && in.Name == "" {
			in.Site, in.Row, in.Name = site, row, name
		}
		if in.Site != site || in.Row != row || in.Name != name {
			return inventory.Errorf(inventory.Invalid, "the body is about rack %s and the address about %s", inventory.Clean(in.Rack.ID(), 80), inventory.Clean(id, 80)).
				WithHint("leave site, row and name out of the body")
		}
	}
	in.FillDefaults()
	in.CreatedAt, in.UpdatedAt, in.Version = inventory.Rack{}.CreatedAt, inventory.Rack{}.UpdatedAt, 0
	if old != nil {
		in.CreatedAt, in.UpdatedAt, in.Version = old.CreatedAt, old.UpdatedAt, old.Version
	}
	if err := in.Validate(); err != nil {
		return err
	}
	hosts, err := scoped.HostsInRack(tx, in.Rack)
	in.fill(hosts)
	return err
}

// fill says of a rack what is in it.
func (r *Rack) fill(hosts []inventory.Host) {
	r.ID, r.HostN, r.Faults = r.Rack.ID(), len(hosts), elevation.Of(&r.Rack, hosts, "").Faults
	if r.Faults == nil {
		r.Faults = []elevation.PlaceFault{}
	}
}

// findRack finds a rack that somebody has described or that hosts are placed in.
func findRack(tx inventory.Tx, id string) (out Rack, err error) {
	out.Site, out.Row, out.Name, err = inventory.ParseRackID(id)
	if err != nil {
		return out, err
	}
	hosts, err := scoped.HostsInRack(tx, out.Rack)
	if err != nil {
		return out, err
	}
	stored, err := tx.Racks().Find(out.Rack.ID())
	switch {
	case err == nil:
		out.Rack = stored
	case inventory.IsKind(err, inventory.NotFound) && len(hosts) > 0:
		out.FillDefaults()
	default:
		return out, err
	}
	out.fill(hosts)
	return out, nil
}

// listRacks lists all racks in order of their ids.
func listRacks(tx inventory.Tx) ([]Rack, error) {
	stored, err := tx.Racks().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	hosts, err := tx.ListPlaces()
	if err != nil {
		return nil, err
	}
	in := map[string][]inventory.HostPlace{}
	for _, h := range hosts {
		if id := h.Place.RackID(); id != "" {
			in[id] = append(in[id], h)
		}
	}
	var out []Rack
	for _, r := range stored {
		rack := Rack{Rack: r}
		rack.fill(hostsAt(in[r.ID()]))
		out = append(out, rack)
		delete(in, r.ID())
	}
	for _, hosts := range in {
		p := hosts[0].Place
		rack := Rack{Rack: inventory.Rack{Site: p.Site, Row: p.Row, Name: p.Rack}}
		rack.FillDefaults()
		rack.fill(hostsAt(hosts))
		out = append(out, rack)
	}
	slices.SortFunc(out, func(a, b Rack) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// hostsAt makes hosts of which nothing is known but their places.
func hostsAt(places []inventory.HostPlace) []inventory.Host {
	hosts := make([]inventory.Host, len(places))
	for i, p := range places {
		hosts[i].ID, hosts[i].Name, hosts[i].Place = p.ID, p.Name, p.Place
	}
	return hosts
}

type drawRackInput struct {
	rest.NameRef
	Face inventory.Face `query:"face" doc:"Which side of it" enum:"front,rear" default:"front"`
}

// drawRack answers with the drawing of a rack.
func (s rackOps) drawRack(req *rest.Request, in *drawRackInput) (*huma.StreamResponse, error) {
	var body []byte
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		r, err := findRack(tx, in.Name)
		if err != nil {
			return err
		}
		hosts, err := scoped.HostsInRack(tx, r.Rack)
		body = drawElevation(r.Rack, hosts, in.Face)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "image/svg+xml")
		ctx.SetHeader("Content-Security-Policy", "default-src 'none'; frame-ancestors 'self'")
		_, _ = ctx.BodyWriter().Write(body) // the client is gone if this fails
	}}, nil
}

type cablingInput struct {
	Rack string `query:"rack" doc:"Only the hosts of this rack" maxLength:"768"`
	Host string `query:"host" doc:"Only this host, in whatever rack it is: its name, id or MAC" maxLength:"253"`
}

type cablingOutput struct {
	Body hardware.Cabling
}

// cabling answers with the cables of all hosts or of a rack.
func (s rackOps) cabling(req *rest.Request, in *cablingInput) (*cablingOutput, error) {
	var hosts []hardware.Wired
	var racks []inventory.Rack
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		var site *string
		if in.Host != "" {
			h, err := rest.FindHost(tx, in.Host)
			if err != nil {
				return err
			}
			in.Host, site = h.Name, &h.Place.Site
			in.Rack = h.Place.RackID()
		}
		if in.Rack != "" {
			r, err := findRack(tx, in.Rack)
			if err != nil {
				return err
			}
			site, racks, in.Rack = &r.Site, []inventory.Rack{r.Rack}, r.ID
		} else {
			var err error
			if racks, err = tx.Racks().List(inventory.Page{}); err != nil {
				return err
			}
		}
		all, err := tx.ListPlaces()
		if err != nil {
			return err
		}
		heard, err := tx.ListHeard()
		if err != nil {
			return err
		}
		at := hostsAt(all)
		for i := range at {
			h := &at[i]
			if site != nil && h.Place.Site != *site || h.Place.Rack == "" && in.Rack != "" {
				continue
			}
			l := heard[h.ID]
			hosts = append(hosts, hardware.Wired{Host: h, At: l.At, Now: l.Now, Before: l.Before})
		}
		return nil
	})
	out := hardware.Cables(hosts, racks)
	if in.Rack != "" {
		out = ofRack(out, hosts, in.Rack)
	}
	if in.Host != "" {
		out.Links = slices.DeleteFunc(out.Links, func(l hardware.Link) bool { return l.Host != in.Host })
		out.Faults = slices.DeleteFunc(out.Faults, func(f hardware.CableFault) bool { return !slices.Contains(f.Hosts, in.Host) })
	}
	return &cablingOutput{Body: out}, err
}

// ofRack leaves what is about hosts of one rack.
func ofRack(c hardware.Cabling, hosts []hardware.Wired, rack string) hardware.Cabling {
	isIn := map[string]bool{}
	for _, w := range hosts {
		isIn[w.Host.Name] = w.Host.Place.RackID() == rack
	}
	c.Links = slices.DeleteFunc(c.Links, func(l hardware.Link) bool { return l.Rack != rack })
	c.Faults = slices.DeleteFunc(c.Faults, func(f hardware.CableFault) bool {
		return !slices.ContainsFunc(f.Hosts, func(h string) bool { return isIn[h] })
	})
	return c
}
