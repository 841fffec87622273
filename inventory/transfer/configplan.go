package transfer

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// planConfigs plans what hosts and layers refer to: secrets, join targets, profiles. It returns the profiles as they
// will be.
func planConfigs(p *problems, d Document, c Current, diff *Diff) map[string]inventory.Profile {
	stored := map[string]bool{}
	for _, s := range c.Secrets {
		stored[s.Name] = true
	}
	secrets := secretNoun()
	check := secrets.check
	secrets.check = func(s *inventory.Secret) error {
		if !stored[s.Name] {
			return inventory.Errorf(inventory.NotFound, "secret %s is not stored here, and its value is in no file", s.Name).
				WithHint("set it first: slipway secret set %s", s.Name)
		}
		return check(s)
	}
	secrets.plan(p, d, c, diff)

	targets := targetNoun()
	valid := targets.check
	targets.check = func(t *inventory.JoinTarget) error {
		for _, name := range []string{t.Kubeconfig, t.Token, t.PKI, t.CertificateKey} {
			if name != "" && !stored[name] {
				return inventory.Errorf(inventory.NotFound, "target %s: there is no secret %s", t.Name, name).
					WithHint("set it first: slipway secret set %s", name)
			}
		}
		return valid(t)
	}
	targets.plan(p, d, c, diff)
	return planProfiles(p, d, c, diff)
}

func planProfiles(p *problems, d Document, c Current, diff *Diff) map[string]inventory.Profile {
	var changes Diff
	profiles := profileNoun()
	valid := profiles.check
	profiles.check = func(f *inventory.Profile) error {
		if err := valid(f); err != nil {
			return err
		}
		if !slices.Contains(c.Images, f.Image) {
			return inventory.Errorf(inventory.NotFound, "profile %s: there is no image %s", f.Name, f.Image).
				WithHint("list them with: slipway image list")
		}
		return nil
	}
	all := profiles.plan(p, d, c, &changes)
	for _, r := range d.Profiles {
		f := all[r.Value.Name]
		if _, known := all[f.Extends]; f.Extends != "" && !known {
			p.add(r.File, r.Line, inventory.Errorf(inventory.NotFound, "profile %s: there is no profile %s to extend", f.Name, f.Extends).
				WithHint("list them with: slipway profile list"))
		}
		if chain := circle(all, f.Name); chain != nil {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Invalid, "profiles extend each other in a circle: %s", strings.Join(chain, " extends ")).
				WithHint("take extends out of one of them"))
		}
	}
	diff.Changes = append(diff.Changes, parentsFirst(changes.Changes)...)
	return all
}

// circle returns the way from a profile over those it extends back to itself, nil if there is none.
func circle(all map[string]inventory.Profile, name string) []string {
	chain := []string{name}
	for parent := all[name].Extends; parent != "" && len(chain) <= len(all); parent = all[parent].Extends {
		chain = append(chain, parent)
		if parent == name {
			return chain
		}
	}
	return nil
}

// parentsFirst moves each profile behind the one it extends.
func parentsFirst(changes []Change) (sorted []Change) {
	at := map[string]int{}
	for i, c := range changes {
		at[c.Name] = i
	}
	done := map[int]bool{}
	var add func(i int)
	add = func(i int) {
		if done[i] {
			return
		}
		done[i] = true // first: a circle ends here
		if parent, has := at[changes[i].Profile().Extends]; has {
			add(parent)
		}
		sorted = append(sorted, changes[i])
	}
	for i := range changes {
		add(i)
	}
	return sorted
}

// planLayers plans layers, in which hosts are called by their names.
func planLayers(p *problems, d Document, c Current, diff *Diff) {
	hosts := hostNames(c, diff)
	layers := layerNoun()
	valid := layers.check
	layers.check = func(l *inventory.Layer) error {
		if l.Scope == inventory.ScopeHost && !hosts[l.Name] {
			return inventory.Errorf(inventory.NotFound, "layer %s: there is no host %s", l.Key(), l.Name).
				WithHint("list them with: slipway host list")
		}
		return valid(l)
	}
	layers.plan(p, d, c, diff)
}

// hostNames returns the names of hosts that are there or will be.
func hostNames(c Current, diff *Diff) map[string]bool {
	names := map[string]bool{}
	for _, h := range c.Hosts {
		names[h.Name] = true
	}
	for _, change := range diff.Changes {
		if h, is := change.thing.(*inventory.Host); is {
			names[h.Name] = true
		}
	}
	return names
}

func namesByID(c Current) map[inventory.HostID]string {
	names := map[inventory.HostID]string{}
	for _, h := range c.Hosts {
		names[h.ID] = h.Name
	}
	return names
}

// namedLayers returns the layers with the names of hosts instead of their ids.
func namedLayers(c Current) []inventory.Layer {
	names := namesByID(c)
	var layers []inventory.Layer
	for _, l := range c.Layers {
		if l.Scope == inventory.ScopeHost {
			if l.Name = names[inventory.HostID(l.Name)]; l.Name == "" {
				continue
			}
		}
		layers = append(layers, l)
	}
	return layers
}
