package redfish

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// role is a Role: what it may do counts, not its name.
type role struct {
	Path               string `json:"@odata.id"`
	ID                 string `json:"Id"`
	RoleID             string `json:"RoleId"`
	AssignedPrivileges []string
}

// kind sums a role up by the privileges that the standard assigns to its own roles (DSP0266, operation-to-privilege mapping).
func (r *role) kind() string {
	has := func(p string) bool { return slices.Contains(r.AssignedPrivileges, p) }
	switch {
	// Both together: with ConfigureUsers alone an account could make an administrator, but not set a boot override.
	case has("ConfigureUsers") && has("ConfigureManager"):
		return "administrator"
	case has("ConfigureComponents") || has("ConfigureManager"):
		return "operator"
	case has("Login"):
		return "user"
	}
	return "none"
}

// standardRole is what the names that the standard gives mean.
func standardRole(id string) string {
	switch id {
	case "Administrator":
		return "administrator"
	case "Operator":
		return "operator"
	case "ReadOnly":
		return "user"
	case "None", "NoAccess":
		return "none"
	}
	return ""
}

// roleUnknown is a role that the controller does not tell, or whose privileges it does not show.
const roleUnknown = "unknown"

// roleOf says what an account may do: by the standard's name of its role, or by the privileges of the role.
func (d *driver) roleOf(ctx context.Context, a *account) (string, error) {
	// A standard name needs no further request.
	if is := standardRole(a.RoleID); is != "" {
		return is, nil
	}
	refs := []string{a.Links.Role.ID}
	if a.RoleID != "" {
		refs = append(refs, strings.TrimRight(a.service, "/")+"/Roles/"+a.RoleID)
	}
	for _, ref := range refs {
		if ref == "" {
			continue
		}
		var r role
		err := d.read(ctx, ref, &r)
		if err == nil && r.AssignedPrivileges != nil {
			return r.kind(), nil
		}
		// Only the end of the context ends this. A role that the account may not read is unknown, which CheckCredentials
		// accepts.
		if err != nil && ctx.Err() != nil {
			return "", err
		}
	}
	// An empty slot has no role.
	if a.UserName == "" {
		return "none", nil
	}
	return roleUnknown, nil
}

// adminRole finds the id of the role that a new administrator is to have: the standard's where the controller has it.
func (d *driver) adminRole(ctx context.Context, service string) (string, error) {
	const standard = "Administrator"
	var doc struct{ Roles link }
	// No error here: the name of the standard is right almost everywhere, and confirmUser checks what came of it.
	if err := d.read(ctx, service, &doc); err != nil || doc.Roles.ID == "" {
		return standard, nil
	}
	docs, err := d.members(ctx, doc.Roles.ID)
	if err != nil {
		return "", err
	}
	found := ""
	for _, raw := range docs {
		var r role
		if decode(raw, &r) != nil {
			continue
		}
		id := cmp.Or(r.RoleID, r.ID)
		if id == standard {
			return standard, nil
		}
		if found == "" && id != "" && r.kind() == "administrator" {
			found = inventory.Clean(id, 80)
		}
	}
	if found == "" {
		return standard, nil
	}
	return found, nil
}
