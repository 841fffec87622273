package access

import (
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

const groupsMax = 2000 // of one person

// identity is who the provider says somebody is.
type identity struct {
	subject, name, displayName string
	groups                     []string
}

// claim finds what a provider says under a name. Dots go into objects, as in realm_access.roles; a claim that has dots in
// its own name, as some providers' URLs do, wins.
func claim(said map[string]any, name string) (any, bool) {
	if v, ok := said[name]; ok {
		return v, true
	}
	head, rest, isDeep := strings.Cut(name, ".")
	inner, ok := said[head].(map[string]any)
	if !isDeep || !ok {
		return nil, false
	}
	return claim(inner, rest)
}

func textClaim(said map[string]any, name string) string {
	v, _ := claim(said, name)
	text, _ := v.(string)
	return text
}

// identityOf reads who somebody is from the claims.
func identityOf(o OIDC, subject string, said map[string]any) (identity, error) {
	who := identity{subject: subject, name: userName(textClaim(said, o.NameClaim)), displayName: inventory.Clean(textClaim(said, "name"), 200)}
	if who.name == "" {
		return who, inventory.Errorf(inventory.Forbidden, "%s does not say your name: the claim %s is missing, or nothing of it can be a name here", o.Title, o.NameClaim).
			WithHint("an admin sets oidc.nameClaim, or adds a scope to oidc.scopes")
	}
	v, has := claim(said, o.GroupsClaim)
	if elsewhere, ok := said["_claim_names"].(map[string]any); ok && !has && elsewhere[o.GroupsClaim] != nil {
		// OpenID Connect Core 1.0, 5.6.2: the claim is at another place. Microsoft Entra does so for more than 200 groups.
		return who, inventory.Errorf(inventory.Forbidden, "%s does not say your groups: you are in more than it sends", o.Title).
			WithHint("an admin has the provider send only the groups that are assigned to Slipway, or application roles with oidc.groupsClaim: roles")
	}
	switch v := v.(type) {
	case string:
		who.groups = []string{v}
	case []any:
		if len(v) > groupsMax {
			return who, inventory.Errorf(inventory.Forbidden, "%s names %d groups of yours; at most %d are read", o.Title, len(v), groupsMax).
				WithHint("an admin has the provider send only the groups that are assigned to Slipway")
		}
		for _, g := range v {
			if text, ok := g.(string); ok {
				who.groups = append(who.groups, text)
			}
		}
	}
	return who, nil
}

// userName makes a name for a user out of what the provider calls somebody: "Anna.Berg@example.org" is anna-berg.
func userName(text string) string {
	text, _, _ = strings.Cut(text, "@")
	if len(text) > 255 {
		text = text[:255]
	}
	text = inventory.NameFrom(text, "")
	return strings.TrimRight(text[:min(len(text), 63)], "-")
}

// grantsOf are the roles of somebody in groups: in each pool the highest that one of them has.
func (o *OIDC) grantsOf(groups []string) inventory.Grants {
	best := map[string]inventory.UserRole{}
	for _, group := range groups {
		for _, g := range o.Groups[group] {
			if !best[g.Pool].Allows(g.Role) {
				best[g.Pool] = g.Role
			}
		}
	}
	out := inventory.Grants{}
	for _, pool := range slices.Sorted(maps.Keys(best)) {
		out = append(out, inventory.Grant{Role: best[pool], Pool: pool})
	}
	return out
}
