package transfer

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	facts "slipway.dev/slipway/inventory/noun"
)

// noun is how the things of a noun are read, checked, planned, written and stored.
type noun[T any] struct {
	noun   Noun
	fields []field[T]
	rows   func(*Document) *[]Row[T]
	there  func(*Current) *[]T
	named  func(Current) []T // with the names of hosts in place of their ids; nil where no id stands in them
	isUsed bool              // other nouns name it, so a file has it before them
	empty  T                 // what a row starts from when it makes a new thing
	key    func(*T) string   // "" for a row that names nothing
	check  func(*T) error
	list   func(inventory.Tx) ([]T, error)
	save   func(tx inventory.Tx, v *T, isNew bool, now time.Time) error
}

// ofTable is a plain noun. The table of nouns says how its things are called, checked and stored.
func ofTable[T any](n facts.Noun[T], fields []field[T], rows func(*Document) *[]Row[T], there func(*Current) *[]T) noun[T] {
	return noun[T]{noun: Noun(n.Many), fields: fields, rows: rows, there: there, key: n.Key, check: n.Validate}.storedIn(n.Records)
}

// storedIn returns the noun with records as its store.
func (n noun[T]) storedIn(records func(inventory.RecordTx) inventory.Records[T]) noun[T] {
	n.list = func(tx inventory.Tx) ([]T, error) { return records(tx).List(inventory.Page{}) }
	n.save = func(tx inventory.Tx, v *T, isNew bool, now time.Time) error {
		if isNew {
			return records(tx).Create(v, now)
		}
		return records(tx).Update(v, now)
	}
	return n
}

// table is a noun of any type.
type table interface {
	name() Noun
	isFirst() bool
	load(tx inventory.Tx, c *Current) error
	read(p *problems, value *yaml.Node, d *Document)
	checkKeys(p *problems, d *Document)
	export(c Current, d *Document)
	only(to, from *Document)
	write(root *yaml.Node, d *Document)
	apply(tx inventory.Tx, c Change, now time.Time) error
}

// tables are the nouns of files.
func tables() []table {
	all := []table{hostNoun(), subnetNoun(), reservationNoun(), profileNoun(), layerNoun(), targetNoun(), secretNoun()}
	for _, n := range plainNouns() {
		all = append(all, n)
	}
	return append(all, bmcNoun())
}

// Nouns are all nouns that a file may have.
func Nouns() (all []string) {
	for _, n := range tables() {
		all = append(all, string(n.name()))
	}
	return all
}

// nouns lists them for a hint.
func nouns() string {
	all := Nouns()
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

func (n noun[T]) name() Noun    { return n.noun }
func (n noun[T]) isFirst() bool { return n.isUsed }

func (n noun[T]) load(tx inventory.Tx, c *Current) (err error) {
	*n.there(c), err = n.list(tx)
	return err
}

func (n noun[T]) read(p *problems, value *yaml.Node, d *Document) {
	*n.rows(d) = readList(p, value, n)
}

// checkKeys notes rows without a key and keys that come twice.
func (n noun[T]) checkKeys(p *problems, d *Document) {
	seen := newOnce(p)
	for _, r := range *n.rows(d) {
		key := n.key(&r.Value)
		if key == "" && !r.isBroken {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Invalid, "the %s has no %s", n.noun.Singular(), n.fields[0].name))
		}
		seen.see(n.noun.Singular(), key, r.File, r.Line)
	}
}

// export adds rows that give every field.
func (n noun[T]) export(c Current, d *Document) {
	all := *n.there(&c)
	if n.named != nil {
		all = n.named(c)
	}
	var given []string
	for _, f := range n.fields {
		given = append(given, f.name)
	}
	for _, v := range all {
		*n.rows(d) = append(*n.rows(d), Row[T]{Value: v, Given: given})
	}
}

func (n noun[T]) only(to, from *Document) { *n.rows(to) = *n.rows(from) }

func (n noun[T]) apply(tx inventory.Tx, c Change, now time.Time) error {
	return n.save(tx, c.thing.(*T), c.Op == OpCreate, now)
}

// plan says what rows do to the things that are there. It returns those there will be, by their keys.
func (n noun[T]) plan(p *problems, d Document, c Current, diff *Diff) map[string]T {
	there := *n.there(&c)
	if n.named != nil {
		there = n.named(c)
	}
	all := map[string]T{}
	for _, v := range there {
		all[n.key(&v)] = v
	}
	for _, r := range *n.rows(&d) {
		if p.full() {
			break
		}
		key := n.key(&r.Value)
		change := Change{Noun: n.noun, Name: key, Line: r.Line}
		v, before, err := r.Value, (*T)(nil), error(nil)
		if old, found := all[key]; found {
			v, before = old, &old
			err = merge(&v, r, n.fields, "")
		}
		if err == nil {
			err = n.check(&v)
		}
		if err != nil {
			p.add(r.File, r.Line, err)
			continue
		}
		change.Op, change.Fields = compare(before, &v, n.fields) // the check has brought them into the form that is kept
		change.thing = &v
		all[key] = v
		diff.Changes = append(diff.Changes, change)
	}
	return all
}

func hostNoun() noun[inventory.Host] {
	return noun[inventory.Host]{
		noun: Hosts, fields: hostFields(), empty: inventory.Host{State: inventory.Discovered},
		rows:  func(d *Document) *[]Row[inventory.Host] { return &d.Hosts },
		there: func(c *Current) *[]inventory.Host { return &c.Hosts },
		list: func(tx inventory.Tx) ([]inventory.Host, error) {
			return tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		},
		save: func(tx inventory.Tx, h *inventory.Host, isNew bool, now time.Time) error {
			if !isNew {
				return tx.UpdateHost(h, now)
			}
			h.StateSinceAt = now
			h.StateReason = "imported"
			return tx.CreateHost(h, now)
		},
	}
}

func subnetNoun() noun[inventory.Subnet] {
	n := ofTable(facts.Subnets, subnetFields(), func(d *Document) *[]Row[inventory.Subnet] { return &d.Subnets },
		func(c *Current) *[]inventory.Subnet { return &c.Subnets })
	n.empty = newSubnet()
	return n
}

func reservationNoun() noun[inventory.Reservation] {
	return noun[inventory.Reservation]{
		noun: Reservations, fields: reservationFields(),
		rows:  func(d *Document) *[]Row[inventory.Reservation] { return &d.Reservations },
		there: func(c *Current) *[]inventory.Reservation { return &c.Reservations },
		key:   func(r *inventory.Reservation) string { return r.Address.String() },
		list: func(tx inventory.Tx) ([]inventory.Reservation, error) {
			return tx.ListReservations("", inventory.Page{})
		},
		save: func(tx inventory.Tx, r *inventory.Reservation, isNew bool, now time.Time) error {
			if isNew {
				return tx.CreateReservation(r, now)
			}
			return tx.UpdateReservation(r, now)
		},
	}
}

func profileNoun() noun[inventory.Profile] {
	n := ofTable(facts.Profiles, profileFields(), func(d *Document) *[]Row[inventory.Profile] { return &d.Profiles },
		func(c *Current) *[]inventory.Profile { return &c.Profiles })
	n.isUsed = true
	return n
}

// layerNoun calls the layer of a host by the host's name.
func layerNoun() noun[inventory.Layer] {
	n := ofTable(facts.Layers, layerFields(), func(d *Document) *[]Row[inventory.Layer] { return &d.Layers },
		func(c *Current) *[]inventory.Layer { return &c.Layers })
	n.named = namedLayers
	n.key = func(l *inventory.Layer) string {
		if l.Scope == "" {
			return ""
		}
		return l.Key()
	}
	save := n.save
	n.save = func(tx inventory.Tx, v *inventory.Layer, isNew bool, now time.Time) error {
		l := *v
		if l.Scope == inventory.ScopeHost {
			h, err := tx.FindHostByName(l.Name)
			if err != nil {
				return err
			}
			l.Name = string(h.ID)
		}
		return save(tx, &l, isNew, now)
	}
	return n
}

func targetNoun() noun[inventory.JoinTarget] {
	n := ofTable(facts.JoinTargets, targetFields(), func(d *Document) *[]Row[inventory.JoinTarget] { return &d.Targets },
		func(c *Current) *[]inventory.JoinTarget { return &c.Targets })
	n.isUsed = true
	return n
}

// secretNoun stores only what is said of a secret: lists leave out what is sealed, and no file has it.
func secretNoun() noun[inventory.Secret] {
	n := ofTable(facts.Secrets, secretFields(), func(d *Document) *[]Row[inventory.Secret] { return &d.Secrets },
		func(c *Current) *[]inventory.Secret { return &c.Secrets })
	n.isUsed = true
	n.save = func(tx inventory.Tx, v *inventory.Secret, _ bool, now time.Time) error {
		s, err := tx.Secrets().Find(v.Name)
		if err != nil {
			return err
		}
		s.About, s.Consumers = v.About, v.Consumers
		return tx.Secrets().Update(&s, now)
	}
	return n
}

func bmcNoun() noun[inventory.BMC] {
	return noun[inventory.BMC]{
		noun: BMCs, fields: bmcFields(), named: namedBMCs,
		rows:  func(d *Document) *[]Row[inventory.BMC] { return &d.BMCs },
		there: func(c *Current) *[]inventory.BMC { return &c.BMCs },
		key:   func(b *inventory.BMC) string { return string(b.HostID) },
		check: (*inventory.BMC).Validate,
		list:  func(tx inventory.Tx) ([]inventory.BMC, error) { return tx.ListBMCs(inventory.Page{}) },
		save:  saveBMC,
	}
}
