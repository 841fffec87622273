package backend

import (
	"context"
	"errors"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/kubernetes/contract"
)

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

// discreet removes from a refusal the names of machines that are not the caller's, and of hosts and pools that the
// cluster may not see. An address or host name may be taken by anybody, and the refusal becomes a condition of the
// object, which its users read.
func (a *scoped) discreet(ctx context.Context, isMine func(owner string) bool, err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) || len(e.Refs) == 0 {
		return err
	}
	k, failed := a.names(ctx)
	if failed != nil {
		return failed
	}
	said := *e
	hidden, isAll := k.hidden(isMine, e.Refs)
	if isAll { // it wraps a text that may name anything
		said.Msg, said.Hint = ref.Hidden, ""
	}
	for _, r := range hidden {
		said.Msg, said.Hint = without(said.Msg, r, "another "+string(r.Kind)), without(said.Hint, r, "NAME")
	}
	return &said
}

// beside returns whether an owner is an object of the same namespace of the same cluster as another.
func beside(one string) func(owner string) bool {
	return func(owner string) bool { return isBeside(owner, one) }
}

// isBeside reports whether two owners are objects of one namespace of one cluster.
func isBeside(a, b string) bool {
	one, errOne := contract.ParseOwner(a)
	two, errTwo := contract.ParseOwner(b)
	return errOne == nil && errTwo == nil && one.ClusterUID == two.ClusterUID && one.Namespace == two.Namespace
}

// hiddenOwner stands for an object of another cluster.
var hiddenOwner = contract.Owner{ClusterUID: "hidden"}.String()

// others removes the owner from a refusal of a name that is in use: the cluster may not know the owner.
func others(noun, name string, err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Conflict {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "%s %s is there already, and is not of this object", noun, inventory.Clean(name, 120)).
		WithHint("give the object another name; an admin of Slipway sees whose it is")
}
