package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// errFound ends a walk over all hosts at the first one that fits.
var errFound = errors.New("found")

// findHost finds the host that an object is about: by inventory id, by MAC, or by name.
func (r *run) findHost(ctx context.Context, mh *v1alpha1.MetalHost) (v contract.HostView, isFound bool, err error) {
	if id := mh.Spec.InventoryID; id != "" {
		v, err = r.Appliance.FindHost(ctx, inventory.HostID(id))
		return v, err == nil, err
	}
	err = r.Appliance.EachHost(ctx, func(h contract.HostView) error {
		// The name counts only without MACs. People rename hosts, but the MAC stays with the hardware.
		isIt := len(mh.Spec.BootMACs) == 0 && h.Host.Name == mh.Name
		for _, n := range h.Host.NICs {
			isIt = isIt || slices.Contains(mh.Spec.BootMACs, v1alpha1.MAC(n.MAC))
		}
		if isIt {
			v, isFound = h, true
			// MACs are unique in the inventory: the first host is the only one.
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return v, isFound, err
}

// isUnnamed reports whether nobody has named a host: it is called after its MAC.
func isUnnamed(h *inventory.Host) bool {
	return slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool { return h.Name == "host-"+strings.ReplaceAll(string(n.MAC), ":", "") })
}

// host declares a host, or writes down what its object says of it.
func (r *run) host(ctx context.Context, o *Object, mh *v1alpha1.MetalHost, c *Change) error {
	v, isFound, err := r.findHost(ctx, mh)
	if err != nil {
		return err
	}
	h := v.Host
	c.Op = Unchanged
	if !isFound {
		if len(mh.Spec.BootMACs) == 0 {
			return inventory.Errorf(inventory.NotFound, "there is no host %s", mh.Name).WithHint("give its bootMACs to declare it before it boots; slipway host list shows all")
		}
		if c.Op = Created; !r.DryRun {
			// A known MAC gives back the host that has it. So if this process dies after the call, a repeated apply continues
			// with the same host.
			if h, err = r.Appliance.DeclareHost(ctx, translate.DeclaredHost(mh)); err != nil {
				return err
			}
		}
	}
	changed := func() {
		if c.Op == Unchanged {
			c.Op = Changed
		}
	}
	// Fields that the object leaves out keep the value of the inventory.
	w := translate.Host(mh, h)
	if isFound && mh.Spec.InventoryID == "" && isUnnamed(&h) { // Slipway discovered it before the file declared it
		w.Name = mh.Name
	}
	if !translate.IsSame(w, h) {
		changed()
		if !r.DryRun {
			if h, err = r.Appliance.UpdateHost(ctx, w); err != nil {
				return err
			}
		}
	}
	// Before the flags: Slipway switches an accepted host on at once, and must know how.
	if err := r.power(ctx, o, mh, v.BMC, h.ID, changed); err != nil {
		return err
	}
	return r.flags(ctx, mh, &h, changed)
}

// flags does what verbs do to a host. Accepting comes last: from then on it may be installed.
func (r *run) flags(ctx context.Context, mh *v1alpha1.MetalHost, h *inventory.Host, changed func()) error {
	s := &mh.Spec
	isMaintained := s.Maintenance != nil
	for _, f := range []struct {
		isWanted bool
		do       func() error
	}{
		{isMaintained != h.InMaintenance, func() error { return r.Appliance.Maintain(ctx, h.ID, isMaintained) }},
		{s.Protected != nil && *s.Protected != h.IsProtected, func() error { return r.Appliance.Protect(ctx, h.ID, *s.Protected) }},
		{s.Accepted != nil && *s.Accepted && (h.ID == "" || h.State == inventory.Discovered), func() error { return r.Appliance.Accept(ctx, h.ID) }},
	} {
		// Only differences, so that a repeated apply calls nothing.
		if !f.isWanted {
			continue
		}
		if changed(); r.DryRun {
			continue
		}
		if err := f.do(); err != nil {
			return err
		}
	}
	return nil
}

// open are the options of a controller whose values are not secret.
func open(options map[string]string) map[string]string {
	out := maps.Clone(options)
	maps.DeleteFunc(out, func(k, _ string) bool { return inventory.IsSecretOption(k) })
	return out
}

// power says how a host is powered. The account comes from a Secret of the files.
func (r *run) power(ctx context.Context, o *Object, mh *v1alpha1.MetalHost, stored *inventory.BMC, id inventory.HostID, changed func()) error {
	b, ok := translate.BMC(mh, id)
	if !ok {
		return nil
	}
	var err error
	password, isSecret := "", false
	if ref := mh.Spec.Power.CredentialsRef; ref != nil {
		s := r.secrets[ref.Namespace+"/"+ref.Name]
		switch {
		case s != nil:
			if password, err = translate.Account(&b, s.data); err != nil {
				return inventory.Errorf(inventory.Invalid, "spec.power.credentialsRef: Secret %s/%s (%s:%d) needs the key password", ref.Namespace, ref.Name, s.File, s.Line).
					WithHint("and username, where the controller has users")
			}
			isSecret = true
		// Without its Secret in the files a controller keeps the account that was stored before. There must be one.
		case stored == nil || stored.Username == "":
			return inventory.Errorf(inventory.Invalid, "spec.power.credentialsRef: Secret %s/%s is not in the files", ref.Namespace, ref.Name).
				WithHint("add the Secret object to the files, or set the account with: slipway bmc set %s", o.Name)
		default:
			b.Username = stored.Username
		}
	}
	isKnown := stored != nil && stored.Driver == b.Driver && stored.Address == b.Address && stored.System == b.System && stored.Username == b.Username &&
		stored.InsecureSkipVerify == b.InsecureSkipVerify && stored.Fingerprint == b.Fingerprint && maps.Equal(open(stored.Options), open(b.Options))
	if !isKnown {
		changed()
	}
	// Passwords are sealed, and cannot be compared here. With a Secret in the files the call is repeated each time, and the
	// appliance writes only what is new.
	if r.DryRun || isKnown && !isSecret {
		return nil
	}
	return r.Appliance.SaveBMC(ctx, b, password)
}
