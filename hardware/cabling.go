package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Wired is a host with what its ports heard by LLDP when it was inspected last, and the time before.
type Wired struct {
	Host   *inventory.Host
	At     time.Time
	Now    []inventory.Port
	Before []inventory.Port
}

// Link is a cable that LLDP has proved: a port of a host and the switch port at its other end.
type Link struct {
	Host          string        `json:"host"`
	Rack          string        `json:"rack,omitempty"` // its id
	Unit          int           `json:"unit,omitempty"`
	Port          string        `json:"port"`
	MAC           inventory.MAC `json:"mac"`
	SpeedMbps     int           `json:"speedMbps,omitempty"`
	Switch        string        `json:"switch"` // as it calls itself, else its chassis id
	Chassis       string        `json:"chassis"`
	To            string        `json:"to"` // port of the switch
	ToDescription string        `json:"toDescription,omitempty"`
	Management    string        `json:"management,omitempty"`
	VLAN          int           `json:"vlan,omitempty"`
	At            time.Time     `json:"at"` // of the inspection
}

// CableFault is something about cables that cannot be so, or is not as it was or should be.
type CableFault struct {
	Kind   string   `json:"kind" enum:"shared-port,other-rack,changed,not-as-planned,not-seen"`
	Hosts  []string `json:"hosts"`
	Detail string   `json:"detail"`
	Hint   string   `json:"hint"`
}

// Cabling is what LLDP tells of the cables of some hosts.
type Cabling struct {
	Links  []Link       `json:"links"`
	Faults []CableFault `json:"faults"`
}

// A switch is taken as one rack's when so many of its hosts, and this share of them, stand there.
const (
	ownHostN  = 3
	ownShareN = 4 // all but one in so many
)

// Cables reads the cables of hosts. It compares them with each other, with the hosts' places, with the inspection before,
// and with what racks say. It knows nothing of hosts that were never inspected.
func Cables(hosts []Wired, racks []inventory.Rack) Cabling {
	c := Cabling{Links: []Link{}, Faults: []CableFault{}}
	for _, w := range hosts {
		for _, p := range w.Now {
			if p.Neighbour == nil {
				continue
			}
			n := p.Neighbour
			c.Links = append(c.Links, Link{
				Host: w.Host.Name, Rack: w.Host.Place.RackID(), Unit: w.Host.Place.Unit, Port: p.Name, MAC: p.MAC, SpeedMbps: p.SpeedMbps,
				Switch: cmp.Or(n.System, n.Chassis), Chassis: n.Chassis, To: n.Port, ToDescription: n.PortDescription,
				Management: n.Management, VLAN: n.VLAN, At: w.At,
			})
		}
	}
	slices.SortStableFunc(c.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Rack, b.Rack), cmp.Compare(b.Unit, a.Unit), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	})
	c.shared()
	c.strangers()
	for _, w := range hosts {
		c.changed(w)
	}
	for _, r := range racks {
		c.planned(r, hosts)
	}
	return c
}

// key names the switch of a link: its chassis id, which does not change with its name.
func (l Link) key() string { return strings.ToLower(cmp.Or(l.Chassis, l.Switch)) }

// shared finds switch ports at which more than one host seems to be.
func (c *Cabling) shared() {
	at := map[string][]Link{}
	for _, l := range c.Links {
		at[l.key()+"\x00"+strings.ToLower(l.To)] = append(at[l.key()+"\x00"+strings.ToLower(l.To)], l)
	}
	for _, k := range slices.Sorted(maps.Keys(at)) {
		links := at[k]
		var who, names []string
		for _, l := range links {
			if !slices.Contains(names, l.Host) {
				names, who = append(names, l.Host), append(who, l.Host+" "+l.Port)
			}
		}
		if len(names) > 1 {
			c.Faults = append(c.Faults, CableFault{
				Kind: "shared-port", Hosts: names, Detail: fmt.Sprintf("%s port %s is told by %s", links[0].Switch, links[0].To, strings.Join(who, " and ")),
				Hint: "a port has one cable: one of them was moved since it was inspected, or a bridge is in between; inspect them again",
			})
		}
	}
}

// strangers finds hosts whose switch serves the hosts of another rack.
func (c *Cabling) strangers() {
	racksOf := map[string]map[string][]string{} // switch, rack, hosts
	for _, l := range c.Links {
		if l.Rack == "" {
			continue
		}
		if racksOf[l.key()] == nil {
			racksOf[l.key()] = map[string][]string{}
		}
		if hosts := racksOf[l.key()][l.Rack]; !slices.Contains(hosts, l.Host) {
			racksOf[l.key()][l.Rack] = append(hosts, l.Host)
		}
	}
	for _, l := range c.Links {
		racks := racksOf[l.key()]
		all, own := 0, ""
		for rack, hosts := range racks {
			if all += len(hosts); own == "" || len(hosts) > len(racks[own]) {
				own = rack
			}
		}
		if n := len(racks[own]); l.Rack == "" || l.Rack == own || n < ownHostN || (all-n)*ownShareN > all {
			continue
		}
		c.Faults = append(c.Faults, CableFault{
			Kind: "other-rack", Hosts: []string{l.Host},
			Detail: fmt.Sprintf("%s is placed in rack %s, but %s is on %s, which serves %d hosts of rack %s", l.Host, l.Rack, l.Port, l.Switch, len(racks[own]), own),
			Hint:   "its place is wrong, or its cable: look where it stands, then slipway host place " + l.Host + " --rack RACK --unit N",
		})
	}
}

// changed finds ports that are at another switch port than the time before.
func (c *Cabling) changed(w Wired) {
	for _, p := range w.Now {
		i := slices.IndexFunc(w.Before, func(b inventory.Port) bool { return b.MAC == p.MAC && b.MAC != "" })
		if i < 0 || p.Neighbour == nil || w.Before[i].Neighbour == nil {
			continue
		}
		was, is := w.Before[i].Neighbour, p.Neighbour
		if strings.EqualFold(was.Chassis, is.Chassis) && strings.EqualFold(was.Port, is.Port) {
			continue
		}
		c.Faults = append(c.Faults, CableFault{
			Kind: "changed", Hosts: []string{w.Host.Name},
			Detail: fmt.Sprintf("%s of %s was at %s port %s, and is at %s port %s now", p.Name, w.Host.Name,
				cmp.Or(was.System, was.Chassis), was.Port, cmp.Or(is.System, is.Chassis), is.Port),
			Hint: "somebody moved a cable between its last two inspections; the next one takes this as how it is",
		})
	}
}

// planned compares the cables that a rack should have with those that LLDP shows.
func (c *Cabling) planned(r inventory.Rack, hosts []Wired) {
	for _, want := range r.Cables {
		for _, w := range hosts {
			if low, high := w.Host.Place.Units(); w.Host.Place.RackID() == r.ID() && low != 0 && low <= want.Unit && want.Unit <= high {
				c.compare(want, w)
			}
		}
	}
}

// compare looks whether a host has a cable.
func (c *Cabling) compare(want inventory.Cable, w Wired) {
	var heard []string
	for _, p := range w.Now {
		if p.Neighbour == nil || want.Port != "" && p.Name != want.Port {
			continue
		}
		n := p.Neighbour
		isSwitch := strings.EqualFold(want.Switch, n.System) || strings.EqualFold(want.Switch, n.Chassis)
		if isSwitch && (strings.EqualFold(want.To, n.Port) || strings.EqualFold(want.To, n.PortDescription)) {
			return
		}
		heard = append(heard, fmt.Sprintf("%s at %s port %s", p.Name, cmp.Or(n.System, n.Chassis), n.Port))
	}
	f := CableFault{
		Kind: "not-as-planned", Hosts: []string{w.Host.Name},
		Detail: fmt.Sprintf("%s (U%d) should be at %s port %s, and is %s", words(w.Host.Name, want.Port), want.Unit, want.Switch, want.To, strings.Join(heard, ", ")),
		Hint:   "move the cable, or say how it should be: slipway rack set",
	}
	if len(heard) == 0 {
		f.Kind, f.Detail = "not-seen", fmt.Sprintf("%s (U%d) should be at %s port %s, of which it heard nothing", words(w.Host.Name, want.Port), want.Unit, want.Switch, want.To)
		f.Hint = "is the cable in, and does the switch speak LLDP? Then inspect it again: slipway host inspect " + w.Host.Name + " --restart"
	}
	c.Faults = append(c.Faults, f)
}
