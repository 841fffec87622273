package render

import (
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// parts says, by the origins of layers, which part of a host's configuration they are and who saved it.
func (in *Input) parts() map[string]inventory.Use {
	all := map[string]inventory.Use{}
	for _, l := range in.Layers {
		u := inventory.Use{Noun: "layer", Name: l.Key(), IsAdmins: l.SavedByAdmin}
		if l.Scope == inventory.ScopeHost {
			u.Name = string(inventory.ScopeHost) + "/" + in.Host.Name
		}
		all[originOf(in, l)] = u
	}
	for _, p := range in.Profiles {
		all["profile "+p.Name] = inventory.Use{Noun: "profile", Name: p.Name, IsAdmins: p.SavedByAdmin}
	}
	if m := in.Machine; m != nil {
		all[m.Origin] = inventory.Use{Noun: "machine", Name: strings.TrimPrefix(m.Origin, "machine/"), IsAdmins: m.SavedByAdmin}
	}
	return all
}

// originOf names a layer in findings and provenance.
func originOf(in *Input, l inventory.Layer) string {
	if l.Scope == inventory.ScopeHost {
		return "host " + in.Host.Name
	}
	return "layer " + l.Key()
}

// uses traces what a configuration names to the parts of it that do. What cannot be traced counts as nobody's word.
func (in *Input) uses(c *machineconfig.Config, named []machineconfig.Named, ofDocument string) (all []inventory.Use) {
	parts := in.parts()
	for _, n := range named {
		origin := ofDocument
		if n.Path != "" {
			origin = c.Provenance[n.Path]
			if i := strings.LastIndexByte(origin, ':'); i >= 0 {
				origin = origin[:i]
			}
		}
		u, ok := parts[origin]
		if !ok {
			u = inventory.Use{Noun: "configuration", Name: inventory.Clean(origin, 80)}
		}
		u.Ref, u.IsComputed = n.Ref, n.IsComputed
		if isOwnData := in.Machine != nil && in.Machine.Secret != "" && u.Secret() == in.Machine.Secret; !isOwnData {
			all = append(all, u)
		}
	}
	return all
}

// ofTarget is what a join target brings along: the secrets that it names itself, and no configuration may.
func ofTarget(t *inventory.JoinTarget, refs []string) (all []inventory.Use) {
	for _, ref := range refs {
		if name := inventory.SecretOf(ref); name != "" && slices.Contains([]string{t.PKI, t.Token, t.CertificateKey}, name) {
			all = append(all, inventory.Use{Ref: ref, Noun: "target", Name: t.Name, IsAdmins: t.Owner == ""})
		}
	}
	return all
}

// Untraced returns the references to secrets and join targets that no use stands for: nobody may name them.
func Untraced(refs []string, uses []inventory.Use) (all []string) {
	for _, ref := range refs {
		secret, target := inventory.SecretOf(ref), inventory.TargetOf(ref)
		if secret == "" && target == "" {
			continue
		}
		if !slices.ContainsFunc(uses, func(u inventory.Use) bool {
			return secret != "" && u.Secret() == secret || target != "" && inventory.TargetOf(u.Ref) == target
		}) {
			all = append(all, ref)
		}
	}
	return all
}

// untraced reports what is in the documents without anybody who named it.
func (in *Input) untraced(res *Result) (report machineconfig.Report) {
	for _, ref := range Untraced(res.References, res.Uses) {
		if in.Machine != nil && in.Machine.Secret != "" && inventory.SecretOf(ref) == in.Machine.Secret {
			continue // its own bootstrap data
		}
		report.Errorf("", "not-allowed", "the documents hold %s, and no part of the configuration names it", inventory.Clean(ref, 80)).
			Hint = `name the secret where it is needed: {{ secret "name" }}`
	}
	return report
}

// mayUse asks for each use whether it is allowed, and reports what is not.
func (in *Input) mayUse(c *machineconfig.Config, uses []inventory.Use) (report machineconfig.Report) {
	if in.MayUse == nil {
		return nil
	}
	said := map[string]bool{}
	for _, u := range uses {
		err := in.MayUse(u)
		if err == nil {
			continue
		}
		f := finding(usedAt(c, u.Secret()), err)
		f.Code = "not-allowed"
		if !said[f.Message] {
			report = append(report, f)
		}
		said[f.Message] = true
	}
	report.Locate(c)
	return report
}

// sorted orders uses, each once, so that the same configuration gives the same rendering.
func sorted(uses []inventory.Use) []inventory.Use {
	slices.SortFunc(uses, func(a, b inventory.Use) int {
		return strings.Compare(fmt.Sprint(a.Ref, "\x00", a), fmt.Sprint(b.Ref, "\x00", b))
	})
	return slices.Compact(uses)
}
