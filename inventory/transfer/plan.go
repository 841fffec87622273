package transfer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// Current is what the inventory holds now, as far as an import is concerned.
type Current struct {
	Hosts        []inventory.Host
	Subnets      []inventory.Subnet
	Reservations []inventory.Reservation
	Profiles     []inventory.Profile
	Layers       []inventory.Layer
	Targets      []inventory.JoinTarget
	Secrets      []inventory.Secret
	Images       []string // names
	BMCs         []inventory.BMC
	Plain        map[Noun]*[]any // records of plain nouns without code in this package
}

// Load reads what Plan compares with and Export writes.
func Load(tx inventory.Tx) (c Current, err error) {
	for _, n := range tables() {
		if err := n.load(tx, &c); err != nil {
			return c, err
		}
	}
	images, err := tx.Images().List(inventory.Page{})
	for _, i := range images {
		c.Images = append(c.Images, i.Name)
	}
	return c, err
}

// Op is what an import does with one thing.
type Op string

// The operations.
const (
	OpCreate    Op = "create"
	OpUpdate    Op = "update"
	OpUnchanged Op = "unchanged"
)

// Change is what an import does with one thing.
type Change struct {
	Noun   Noun          `json:"noun"`
	Name   string        `json:"name"` // what it is called now; a reservation's address, a layer's key with the host's name, a BMC's host
	Op     Op            `json:"op"`
	Fields []FieldChange `json:"fields,omitempty"`
	Line   int           `json:"line,omitempty"`

	thing any // a pointer to what there will be; a BMC has the name of its host as its id
}

// HostID names the host that the change is about; it is empty before Apply has made a new one, and for other nouns.
func (c Change) HostID() inventory.HostID {
	if h, is := c.thing.(*inventory.Host); is {
		return h.ID
	}
	return ""
}

// FieldChange is a field before and after, as CSV writes it.
type FieldChange struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Profile and Layer return what the change is about, nil for other nouns; a host's layer has the name of its host.
func (c Change) Profile() *inventory.Profile {
	p, _ := c.thing.(*inventory.Profile)
	return p
}

// Layer is described at Profile.
func (c Change) Layer() *inventory.Layer {
	l, _ := c.thing.(*inventory.Layer)
	return l
}

// Diff is everything that an import does: secrets, targets, profiles, subnets, reservations, hosts, layers,
// other plain nouns and BMCs. Each kind is in the order of the file, but profiles come after those they extend.
type Diff struct {
	Changes []Change `json:"changes"`
}

// CountN returns how many things have that operation.
func (d Diff) CountN(op Op) (n int) {
	for _, c := range d.Changes {
		if c.Op == op {
			n++
		}
	}
	return n
}

// String writes the diff for people: what is new and what changes, field by field, and the totals.
func (d Diff) String() string {
	var b strings.Builder
	for _, c := range d.Changes {
		switch c.Op {
		case OpCreate:
			fmt.Fprintf(&b, "+ %s %s\n", c.Noun.Singular(), c.Name)
			for _, f := range c.Fields {
				fmt.Fprintf(&b, "    %s: %s\n", f.Name, f.After)
			}
		case OpUpdate:
			fmt.Fprintf(&b, "~ %s %s\n", c.Noun.Singular(), c.Name)
			for _, f := range c.Fields {
				fmt.Fprintf(&b, "    %s: %s -> %s\n", f.Name, cmp.Or(f.Before, "(none)"), cmp.Or(f.After, "(none)"))
			}
		}
	}
	fmt.Fprintf(&b, "%d to create, %d to update, %d unchanged\n", d.CountN(OpCreate), d.CountN(OpUpdate), d.CountN(OpUnchanged))
	return b.String()
}

// merge lays the given fields of a row over what is there. Fields in except stay.
func merge[T any](v *T, row Row[T], fields []field[T], except string) error {
	for _, f := range fields {
		after := f.get(&row.Value)
		if !row.has(f.name) || f.name == except || slices.Equal(f.get(v), after) {
			continue
		}
		if err := f.set(v, after); err != nil {
			return fieldError(f.name, err)
		}
	}
	return nil
}

// compare says what becomes of a thing, and of its fields; before is nil for a new one.
func compare[T any](before, after *T, fields []field[T]) (op Op, changes []FieldChange) {
	for _, f := range fields {
		var was []string
		if before != nil {
			was = f.get(before)
		}
		if is := f.get(after); !slices.Equal(was, is) {
			changes = append(changes, FieldChange{Name: f.name, Before: f.shown(was), After: f.shown(is)})
		}
	}
	switch {
	case before == nil:
		return OpCreate, changes
	case len(changes) == 0:
		return OpUnchanged, nil
	}
	return OpUpdate, changes
}

// Plan says what the import of the document would do to what is there. The error is Invalid and lists what prevents the
// import, with the lines of the file. Things that the document does not name stay as they are.
//
// A host row means the host that has one of its MACs, whatever its name; failing that, the host with its name. So a
// discovered host is named by importing its MAC, and two hosts are never mixed up: a row that fits two is refused.
func Plan(d Document, c Current) (Diff, error) {
	p := &problems{}
	var diff Diff
	profiles := planConfigs(p, d, c, &diff)
	subnets := planSubnets(p, d, c, &diff)
	planReservations(p, d, c, subnets, &diff)
	planHosts(p, d, c, profiles, &diff)
	planLayers(p, d, c, &diff)
	for _, n := range plainNouns() {
		n.plan(p, d, c, &diff)
	}
	planBMCs(p, d, c, &diff)
	if err := p.err(); err != nil {
		return Diff{}, err
	}
	return diff, nil
}

// planSubnets returns all subnets as they will be, by name.
func planSubnets(p *problems, d Document, c Current, diff *Diff) map[string]inventory.Subnet {
	all := subnetNoun().plan(p, d, c, diff)
	for _, r := range d.Subnets {
		v := all[r.Value.Name]
		for _, o := range c.Subnets { // compared with what is there now, too: rows are applied one after the other
			if o.Name != v.Name && o.CIDR.Overlaps(v.CIDR) {
				p.add(r.File, r.Line, inventory.Errorf(inventory.Conflict, "subnet %s (%s) overlaps subnet %s (%s)", v.Name, v.CIDR, o.Name, o.CIDR).
					WithHint("change or delete subnet %s first", o.Name))
			}
		}
	}
	return all
}

func planReservations(p *problems, d Document, c Current, subnets map[string]inventory.Subnet, diff *Diff) {
	machines := map[string]netip.Addr{}
	for _, v := range c.Reservations {
		machines[v.Subnet+" "+machine(v)] = v.Address
	}
	reservations := reservationNoun()
	reservations.check = func(v *inventory.Reservation) error {
		n, known := subnets[v.Subnet]
		if !known {
			return inventory.Errorf(inventory.NotFound, "reservation %s: there is no subnet %q", v.Address, v.Subnet).
				WithHint("list them with: slipway subnet list")
		}
		if err := v.Validate(&n); err != nil {
			return err
		}
		if other, has := machines[v.Subnet+" "+machine(*v)]; has && other != v.Address {
			return inventory.Errorf(inventory.Conflict, "%s has the address %s reserved in subnet %s already", machine(*v), other, v.Subnet).
				WithHint("delete the reservation of %s first", other)
		}
		return nil
	}
	reservations.plan(p, d, c, diff)
}

// machine is what a reservation is for.
func machine(r inventory.Reservation) string { return string(r.MAC) + r.ClientID + r.UUID }

// hostIndex finds hosts that are there.
type hostIndex struct {
	byName   map[string]*inventory.Host
	byMAC    map[inventory.MAC]*inventory.Host
	profiles map[string]inventory.Profile
}

func planHosts(p *problems, d Document, c Current, profiles map[string]inventory.Profile, diff *Diff) {
	in := hostIndex{map[string]*inventory.Host{}, map[inventory.MAC]*inventory.Host{}, profiles}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		in.byName[h.Name] = h
		for _, n := range h.NICs {
			in.byMAC[n.MAC] = h
		}
	}
	planned := map[*inventory.Host]int{} // the line
	for _, r := range d.Hosts {
		if p.full() {
			return
		}
		there, err := in.find(r.Value)
		if err != nil {
			p.add(r.File, r.Line, err)
			continue
		}
		if first, twice := planned[there]; twice && there != nil {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Conflict, "host %s is changed by line %d already", there.Name, first).
				WithHint("remove one of the two"))
			continue
		}
		planned[there] = r.Line
		change, err := in.plan(there, r)
		if err != nil {
			p.add(r.File, r.Line, err)
			continue
		}
		diff.Changes = append(diff.Changes, change)
	}
}

// find returns the host that a row means, nil when it is new.
func (in hostIndex) find(row inventory.Host) (*inventory.Host, error) {
	var found *inventory.Host
	for _, n := range row.NICs {
		h := in.byMAC[n.MAC]
		if h != nil && found != nil && h != found {
			return nil, inventory.Errorf(inventory.Conflict, "the MACs belong to two hosts, %s and %s", inventory.HostRef(found.Name), inventory.HostRef(h.Name)).
				WithHint("correct the row, or delete one of the two hosts")
		}
		if h != nil {
			found = h
		}
	}
	named := in.byName[row.Name]
	if found != nil && named != nil && found != named {
		return nil, inventory.Errorf(inventory.Conflict, "the name is of host %s, but the MACs are of host %s", inventory.HostRef(named.Name), inventory.HostRef(found.Name)).
			WithHint("rename or delete one of them first")
	}
	found = cmp.Or(found, named)
	return found, nil
}

// plan says what the row does to the host that it means.
func (in hostIndex) plan(there *inventory.Host, r Row[inventory.Host]) (Change, error) {
	change := Change{Noun: Hosts, Name: r.Value.Name, Line: r.Line}
	v := r.Value
	if there != nil {
		v = *there
		v.NICs = slices.Clone(there.NICs)
		change.Name = there.Name
		if err := merge(&v, r, hostFields(), "accepted"); err != nil { // a state is never imported
			return change, err
		}
	}
	change.Op, change.Fields = compare(there, &v, hostFields())
	if there == nil && len(v.NICs) == 0 && v.Port == "" {
		return change, inventory.Errorf(inventory.Invalid, "host %s has no NIC", v.Name).
			WithHint("add a column macs with the MAC that it boots from, or a column of its switch port. Inventories such as NetBox keep MACs in their export of interfaces")
	}
	if err := v.Validate(); err != nil {
		return change, err
	}
	profile, known := in.profiles[v.Profile]
	if v.Profile != "" && !known {
		return change, inventory.Errorf(inventory.NotFound, "host %s: there is no profile %s", v.Name, v.Profile).
			WithHint("list them with: slipway profile list")
	}
	if v.ProfileRevision < 0 || v.ProfileRevision > profile.Revision { // revisions are counted from 1 and none is deleted
		return change, inventory.Errorf(inventory.NotFound, "host %s: there is no revision %d of profile %q", v.Name, v.ProfileRevision, v.Profile).
			WithHint("a profile that is new here begins with revision 1; leave profileRevision out to follow the newest")
	}
	change.thing = &v
	return change, nil
}

// Apply does in tx what Plan says, and returns it. NewID draws the ids of new hosts. When it fails, the caller must
// let the transaction fail too; nothing is half applied.
func Apply(tx inventory.Tx, d Document, now time.Time, newID func() inventory.HostID) (Diff, error) {
	c, err := Load(tx)
	if err != nil {
		return Diff{}, err
	}
	diff, err := Plan(d, c)
	if err != nil {
		return Diff{}, err
	}
	by := map[Noun]table{}
	for _, n := range tables() {
		by[n.name()] = n
	}
	for _, change := range diff.Changes {
		if h, is := change.thing.(*inventory.Host); is && change.Op == OpCreate {
			h.ID = newID()
		}
		if change.Op == OpUnchanged {
			continue
		}
		if err := by[change.Noun].apply(tx, change, now); err != nil {
			return Diff{}, err
		}
	}
	return diff, nil
}
