package backend

import (
	"cmp"
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/kubernetes/contract"
)

// known is what texts may name to a cluster. A name that it does not have is hidden, so that things that are gone stay
// hidden as well.
type known struct {
	rule   *rule
	owners map[string]string   // of the cluster's machines, by name
	recent func(string) string // owner of a machine of the cluster that came or went since then
	seen   map[string]bool     // names, ids and MACs of hosts that the cluster may see; nil when it sees all
	others map[string][]string // by each name of a host that it may not see: all of them
}

// namesOf returns all by which a text may name a host.
func namesOf(h *inventory.Host) []string {
	names := []string{h.Name, string(h.ID)}
	for _, mac := range h.MACs() {
		names = append(names, string(mac))
	}
	return names
}

// names reads what texts may name, once for each rule: views with references come in bursts. The rule is read again after
// freshFor, and so are the names.
func (a *scoped) names(ctx context.Context) (*known, error) {
	a.naming.Lock()
	defer a.naming.Unlock()
	r, err := a.rule(ctx)
	if err != nil {
		return nil, err
	}
	if a.told != nil && a.told.rule == r {
		return a.told, nil
	}
	k := &known{rule: r, owners: map[string]string{}, recent: a.ownerOf}
	all, err := a.all.ListMachines(ctx, a.scope.UID+"/")
	if err != nil {
		return nil, err
	}
	for i := range all {
		k.owners[all[i].Machine.Name] = all[i].Machine.Owner
	}
	if len(r.only) > 0 {
		k.seen, k.others = map[string]bool{}, map[string][]string{}
		err = a.all.EachHost(ctx, func(v contract.HostView) error {
			names, isSeen := namesOf(&v.Host), r.sees(&v)
			for _, name := range names {
				if isSeen {
					k.seen[name] = true
				} else {
					k.others[name] = names
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	a.told = k
	return k, nil
}

// hidden returns the references without those whose names may be told, and with all names of hosts. isAll says that the texts
// may name anything.
func (k *known) hidden(isMine func(owner string) bool, refs []inventory.Ref) (hidden []inventory.Ref, isAll bool) {
	for _, r := range refs {
		switch r.Kind {
		case ref.OfMachine:
			owner := cmp.Or(k.owners[r.Name], k.recent(r.Name))
			if owner == "" || !isMine(owner) {
				hidden = append(hidden, r)
			}
		case ref.OfHost:
			if k.seen == nil || k.seen[r.Name] {
				continue
			}
			hidden = append(hidden, r)
			for _, name := range k.others[r.Name] {
				hidden = append(hidden, ref.Host(name))
			}
		case ref.OfPool:
			if !k.rule.mayName(r.Name) {
				hidden = append(hidden, r)
			}
		default: // ref.Unknown, and kinds that this code does not know
			return nil, true
		}
	}
	// The longest first: the name of one thing may begin with that of another.
	slices.SortStableFunc(hidden, func(a, b inventory.Ref) int { return len(b.Name) - len(a.Name) })
	return hidden, false
}

// without returns a text in which other words stand for a thing.
func without(text string, r inventory.Ref, by string) string {
	text = ref.Replace(text, string(r.Kind)+" "+r.Name, by)
	return ref.Replace(text, r.Name, by)
}

// tell takes out of texts the names that the cluster may not know.
func (a *scoped) tell(ctx context.Context, isMine func(owner string) bool, refs []inventory.Ref, texts ...*string) error {
	if len(refs) == 0 || !slices.ContainsFunc(texts, func(t *string) bool { return *t != "" }) {
		return nil
	}
	k, err := a.names(ctx)
	if err != nil {
		return err
	}
	hidden, isAll := k.hidden(isMine, refs)
	for _, text := range texts {
		if isAll && *text != "" {
			*text = ref.Hidden
		}
		for _, r := range hidden {
			*text = without(*text, r, "another "+string(r.Kind))
		}
	}
	return nil
}

// toldMachine returns a machine as its cluster may read it.
func (a *scoped) toldMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	refs := machineRefs(&m)
	if err := a.tell(ctx, beside(m.Owner), refs, &m.Reason, &m.Hint); err != nil {
		return inventory.Machine{}, err
	}
	m.Refs = nil
	if len(m.Placement.NotPools) == 0 {
		return m, nil
	}
	r, err := a.rule(ctx)
	if err != nil {
		return inventory.Machine{}, err
	}
	// The names of pools that are closed to the cluster were added for it. UpdateMachine keeps them.
	m.Placement.NotPools = slices.DeleteFunc(slices.Clone(m.Placement.NotPools), func(name string) bool { return !r.mayName(name) })
	return m, nil
}

// machineRefs returns what the texts of a machine may name. A cause of a rejection has no references of its own, and may name
// a pool that is closed to the machine.
func machineRefs(m *inventory.Machine) []inventory.Ref {
	refs := slices.Clone(m.Refs)
	for _, name := range m.Placement.NotPools {
		refs = append(refs, ref.Pool(name))
	}
	return refs
}

// toldResult is toldMachine for what a call returned.
func (a *scoped) toldResult(ctx context.Context, m inventory.Machine, err error) (inventory.Machine, error) {
	if err != nil {
		return inventory.Machine{}, err
	}
	return a.toldMachine(ctx, m)
}

// toldView returns a view as the cluster may read it: its texts name nothing that the cluster may not see.
func (a *scoped) toldView(ctx context.Context, v contract.View) (contract.View, error) {
	isMine, refs := beside(v.Machine.Owner), machineRefs(&v.Machine)
	v.Rejected = slices.Clone(v.Rejected)
	for i := range v.Rejected {
		if err := a.tell(ctx, isMine, refs, &v.Rejected[i].Cause); err != nil {
			return contract.View{}, err
		}
	}
	var err error
	if v.Machine, err = a.toldMachine(ctx, v.Machine); err != nil {
		return contract.View{}, err
	}
	if v.Host != nil {
		h := *v.Host
		if err := a.tell(ctx, isMine, h.Refs, &h.StateReason); err != nil {
			return contract.View{}, err
		}
		h.Refs, v.Host = nil, &h
	}
	if v.Operation != nil {
		o := *v.Operation
		if err := a.tell(ctx, isMine, o.Refs, &o.Reason, &o.Hint); err != nil {
			return contract.View{}, err
		}
		o.Refs, v.Operation = nil, &o
	}
	if v.Session != nil {
		s := *v.Session
		if err := a.tell(ctx, isMine, s.Refs, &s.Reason); err != nil {
			return contract.View{}, err
		}
		s.Refs, v.Session = nil, &s
	}
	if v.Issues, err = a.toldIssues(ctx, isMine, v.Issues, nil); err != nil {
		return contract.View{}, err
	}
	return v, nil
}

// toldHost does the same for a host that the cluster may see.
func (a *scoped) toldHost(ctx context.Context, r *rule, v contract.HostView) (contract.HostView, error) {
	// The reason of a host may name the machine that has it, and keeps no reference for that.
	machine := ref.WithMachine(v.Host.Machine)
	v = r.shown(v)
	if err := a.tell(ctx, a.isOwn, slices.Concat(v.Host.Refs, machine), &v.Host.StateReason); err != nil {
		return contract.HostView{}, err
	}
	v.Host.Refs = nil
	if v.BMC != nil {
		b := *v.BMC
		texts := []*string{&b.Reason}
		if b.LastCheck != nil {
			c := *b.LastCheck
			b.LastCheck, texts = &c, append(texts, &c.Detail)
		}
		if err := a.tell(ctx, a.isOwn, slices.Concat(b.Refs, machine), texts...); err != nil {
			return contract.HostView{}, err
		}
		b.Refs, v.BMC = nil, &b
	}
	if v.Machine != nil {
		m, err := a.toldMachine(ctx, *v.Machine)
		if err != nil {
			return contract.HostView{}, err
		}
		v.Machine = &m
	}
	var err error
	if v.Issues, err = a.toldIssues(ctx, a.isOwn, v.Issues, machine); err != nil {
		return contract.HostView{}, err
	}
	return v, nil
}

// toldIssues leaves out issues that are about a host which the cluster may not see, too: their texts name each of their
// hosts.
func (a *scoped) toldIssues(
	ctx context.Context, isMine func(owner string) bool, all []inventory.Issue, more []inventory.Ref,
) (told []inventory.Issue, err error) {
	for _, i := range all {
		if len(i.HostIDs) > 1 {
			k, err := a.names(ctx)
			if err != nil {
				return nil, err
			}
			if k.seen != nil && slices.ContainsFunc(i.HostIDs, func(id inventory.HostID) bool { return !k.seen[string(id)] }) {
				continue
			}
		}
		if err := a.tell(ctx, isMine, slices.Concat(i.Refs, more), &i.Cause, &i.Hint); err != nil {
			return nil, err
		}
		i.Refs = nil
		told = append(told, i)
	}
	return told, nil
}

// mayName reports whether the cluster may know the name of a pool. Everybody knows that there is a default pool.
func (r *rule) mayName(pool string) bool { return pool == inventory.DefaultPool || r.shows(pool) }

// shows reports whether the cluster is shown a pool. One that is kept to pools is shown these, and what its own objects made.
func (r *rule) shows(pool string) bool { return r.isGiven(pool) || slices.Contains(r.own, pool) }

// isGiven reports whether the cluster may use a pool, as far as an admin's word goes.
func (r *rule) isGiven(name string) bool {
	return len(r.only) == 0 || slices.ContainsFunc(r.only, func(p pool) bool { return p.name == name })
}

// keepHidden adds to wanted pools those of a stored machine that its cluster was not told.
func (r *rule) keepHidden(wanted, stored []string) []string {
	all := slices.Clone(wanted)
	for _, name := range stored {
		if !r.mayName(name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
