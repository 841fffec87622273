// Package reference owns the rule of references: whether a part of a configuration may refer to a secret or to a join
// target. The rule applies when something is saved, when it is rendered, and once more at the delivery of a document.
//
// Start reading at Check, then decide, which is the rule.
package reference

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/template"
)

// Place is where a configuration is given out.
type Place struct {
	// Pools are those of the machine, or of a host that no machine has.
	Pools []string
	// Owner is who wants the machine, "" for a person.
	Owner string
	// IsAnywhere stands for all pools: a profile or layer is saved, and no host asks for it yet.
	IsAnywhere bool
}

// thing is a secret or a join target, as the rule sees it.
type thing struct {
	noun, name string
	// system says what of the system itself a secret belongs to, "" for one that configurations may name.
	system    string
	owner     string
	consumers inventory.Consumers
	isThere   bool
}

func (t *thing) words() string { return t.noun + " " + inventory.Clean(t.name, 64) }

// Check refuses a use that is not allowed. Errors that are no *inventory.Error are the store's.
func Check(tx inventory.Tx, u inventory.Use, at Place) error {
	t, err := find(tx, u)
	if err != nil {
		return err
	}
	if err := decide(t, u, at); err != nil {
		return &Refusal{Use: u, Err: err}
	}
	return nil
}

// Refusal is a use that is not allowed.
type Refusal struct {
	Use inventory.Use
	Err *inventory.Error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap says why.
func (r *Refusal) Unwrap() error { return r.Err }

// decide is the rule. Who is no admin hears of a thing that is not for them what they would hear if there were none.
func decide(t thing, u inventory.Use, at Place) *inventory.Error {
	isTarget := u.Noun == "target" // names its own secrets, which no configuration may
	isConsumer := at.IsAnywhere && len(t.consumers.Pools) > 0 ||
		slices.ContainsFunc(at.Pools, func(p string) bool { return slices.Contains(t.consumers.Pools, p) }) ||
		u.Noun == "profile" && slices.Contains(t.consumers.Profiles, u.Name) ||
		isTarget && slices.Contains(t.consumers.Targets, u.Name)
	switch {
	case !t.isThere && u.IsAdmins && !u.IsComputed:
		return nil // others say in better words that it is not there
	case t.isThere && t.system != "" && !isTarget && u.IsAdmins:
		return inventory.Errorf(inventory.Forbidden, "%s belongs to %s: no configuration may name it", t.words(), t.system).
			WithHint("store what the machine needs as a secret of its own: slipway secret set NAME")
	case t.isThere && (t.system == "" || isTarget) && (isConsumer || isOwners(t, u, at)):
		return nil
	case t.isThere && (t.system == "" || isTarget) && t.consumers.IsZero() && t.owner == "" && u.IsAdmins && !u.IsComputed:
		return nil
	case u.IsAdmins && t.isThere && u.IsComputed && t.consumers.IsZero():
		return inventory.Errorf(inventory.Forbidden, "%s may not name %s, because a template puts the name together from what others write", u.Part(), t.words()).
			WithHint("write the name in quotes, or say whom it is for: slipway %s set %s --for pool:NAME", t.noun, t.name)
	case u.IsAdmins && t.isThere && t.owner != "":
		return inventory.Errorf(inventory.Forbidden, "%s may not name %s, which is kept for %s", u.Part(), t.words(), inventory.Clean(t.owner, 120))
	case u.IsAdmins && t.isThere:
		return inventory.Errorf(inventory.Forbidden, "%s may not name %s, which is for %s%s", u.Part(), t.words(), strings.Join(t.consumers.Texts(), ", "), where(at)).
			WithHint("add whom it is for, too: slipway %s set %s --for ...", t.noun, t.name)
	}
	return inventory.Errorf(inventory.Forbidden, "there is no %s that %s may name%s", t.words(), cmp.Or(u.Part(), "a configuration"), where(at)).
		WithHint("an admin says whom it is for: slipway %s set %s --for %s; or saves the configuration", t.noun, inventory.Clean(t.name, 64), suggestion(u, at))
}

// isOwners reports whether a thing is kept for the object that asks: a secret for that object alone, a join target for
// the machines of its namespace.
func isOwners(t thing, u inventory.Use, at Place) bool {
	switch {
	case t.owner == "":
		return false
	case t.noun == "secret" && u.Noun == "target":
		return true // the store and the controllers let a target name its own only
	case t.noun == "secret":
		return u.Noun == "machine" && t.owner == at.Owner
	}
	return at.Owner != "" && namespace(t.owner) == namespace(at.Owner)
}

// namespace is the cluster and the namespace of an owner.
func namespace(owner string) string {
	parts := strings.SplitN(owner, "/", 3)
	if len(parts) < 3 {
		return owner
	}
	return parts[0] + "/" + parts[1]
}

// where says in which pools it was asked.
func where(at Place) string {
	if len(at.Pools) == 0 {
		return ""
	}
	return " in pool " + inventory.Clean(strings.Join(at.Pools, ", "), 120)
}

func suggestion(u inventory.Use, at Place) string {
	switch {
	case u.Noun == "profile":
		return "profile:" + u.Name
	case len(at.Pools) > 0:
		return "pool:" + at.Pools[0]
	}
	return "pool:NAME"
}

// find reads what the rule has to know of what is named.
func find(tx inventory.Tx, u inventory.Use) (t thing, err error) {
	if name := inventory.TargetOf(u.Ref); name != "" {
		t = thing{noun: "target", name: name}
		j, err := tx.JoinTargets().Find(name)
		if err != nil {
			return t, ignoreNotFound(err)
		}
		t.owner, t.consumers, t.isThere = j.Owner, j.Consumers, true
		return t, nil
	}
	t = thing{noun: "secret", name: u.Secret()}
	s, err := tx.Secrets().Find(t.name)
	if err != nil {
		return t, ignoreNotFound(err)
	}
	t.owner, t.consumers, t.isThere = s.Owner, s.Consumers, true
	t.system, err = System(tx, t.name)
	return t, err
}

// System says what of the system itself a secret belongs to, "" for one that configurations may name.
func System(tx inventory.Tx, name string) (string, error) {
	clusters, err := tx.Clusters().List(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("read clusters: %w", err)
	}
	for _, c := range clusters {
		if c.Kubeconfig == name {
			return "cluster " + c.Name, nil
		}
	}
	targets, err := tx.JoinTargets().List(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("read join targets: %w", err)
	}
	for _, t := range targets {
		if slices.Contains([]string{t.Kubeconfig, t.Token, t.PKI, t.CertificateKey}, name) {
			return "join target " + t.Name, nil
		}
	}
	if strings.HasPrefix(name, inventory.ClusterSecretPrefix) {
		return "the clusters, as its name begins with " + inventory.ClusterSecretPrefix, nil
	}
	return "", nil
}

func ignoreNotFound(err error) error {
	if e, ok := errors.AsType[*inventory.Error](err); ok && e.Kind == inventory.NotFound {
		return nil
	}
	return err
}

// Profile refuses a profile that names what it may not.
func Profile(tx inventory.Tx, p *inventory.Profile) error {
	named := namesIn(p.Config)
	if p.Document != nil {
		named = append(named, template.NamesIn(p.Document.Text)...)
	}
	return check(tx, named, inventory.Use{Noun: "profile", Name: p.Name, IsAdmins: p.SavedByAdmin}, Place{IsAnywhere: true})
}

// Layer refuses a layer that names what it may not.
func Layer(tx inventory.Tx, l *inventory.Layer) error {
	at := Place{IsAnywhere: true}
	if l.Scope == inventory.ScopeHost {
		h, err := tx.FindHost(inventory.HostID(l.Name))
		if err != nil {
			return ignoreNotFound(err) // the store says it
		}
		if at, err = PlaceOf(tx, &h); err != nil {
			return err
		}
	}
	return check(tx, namesIn(l.Config), inventory.Use{Noun: "layer", Name: l.Key(), IsAdmins: l.SavedByAdmin}, at)
}

// Machine refuses a machine whose own configuration names what it may not.
func Machine(tx inventory.Tx, m *inventory.Machine) error {
	named := namesIn(m.Config)
	if t := m.Drain.Target; t != "" {
		named = append(named, machineconfig.Named{Ref: "join://" + t})
	}
	return check(tx, named, inventory.Use{Noun: "machine", Name: m.Name, IsAdmins: m.SavedByAdmin}, placeOf(m))
}

func check(tx inventory.Tx, named []machineconfig.Named, part inventory.Use, at Place) error {
	for _, n := range named {
		u := part
		u.Ref, u.IsComputed = n.Ref, n.IsComputed
		if err := Check(tx, u, at); err != nil {
			return err
		}
	}
	return nil
}

func placeOf(m *inventory.Machine) Place {
	return Place{Pools: []string{cmp.Or(m.Pool, inventory.DefaultPool)}, Owner: m.Owner}
}

// PlaceOf returns where the configuration of a host is given out: the pool of the machine that has it, else the pools that
// hold it.
func PlaceOf(tx inventory.Tx, h *inventory.Host) (Place, error) {
	if h.Machine != "" {
		m, err := tx.FindMachine(h.Machine)
		if err != nil {
			return Place{}, fmt.Errorf("read machine of %s: %w", h.Name, err)
		}
		return placeOf(&m), nil
	}
	pools, err := PoolsOf(tx, h)
	return Place{Pools: pools}, err
}

// PoolsOf returns the names of the pools that hold a host. The pool "default" holds every host while nobody has made it.
func PoolsOf(tx inventory.Tx, h *inventory.Host) (names []string, err error) {
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("read pools: %w", err)
	}
	if !slices.ContainsFunc(pools, func(p inventory.Pool) bool { return p.Name == inventory.DefaultPool }) {
		names = append(names, inventory.DefaultPool)
	}
	for i := range pools {
		is, err := holds(tx, &pools[i], h)
		if err != nil {
			return nil, err
		}
		if is {
			names = append(names, pools[i].Name)
		}
	}
	return names, nil
}

// holds reports whether a pool holds a host.
func holds(tx inventory.Tx, p *inventory.Pool, h *inventory.Host) (bool, error) {
	sel, err := inventory.ParseSelector(p.Selector)
	if err != nil || p.Selector != "" && !sel.Matches(h) {
		return false, nil //nolint:nilerr // a selector that cannot be read selects nothing
	}
	if p.Requirements.IsZero() {
		return true, nil
	}
	m, err := hardware.NewMatcher(p.Requirements)
	if err != nil {
		return false, nil //nolint:nilerr // the same
	}
	var hw *inventory.Hardware
	n, err := tx.LastInspection(h.ID)
	if err != nil {
		return false, fmt.Errorf("read inspections of %s: %w", h.Name, err)
	}
	if n > 0 {
		i, err := tx.FindInspection(h.ID, n)
		if err != nil {
			return false, fmt.Errorf("read inspection of %s: %w", h.Name, err)
		}
		hw = &i.Hardware
	}
	is, _ := m.Meets(hardware.NewSubject(h, hw))
	return is, nil
}
