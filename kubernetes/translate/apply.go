package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

// Apply returns the stored machine with what is wanted, and whether that changes anything. It takes over the parts of the
// installed system with isProvisioning only: before an installation. Fields that a claim freezes stay; see Frozen.
func Apply(stored, wanted inventory.Machine, isProvisioning bool) (m inventory.Machine, isChanged bool) {
	m = stored
	m.Clean, m.ReleaseAfter, m.Drain = wanted.Clean, wanted.ReleaseAfter, wanted.Drain
	m.Hooks = mergeHooks(stored.Hooks, wanted.Hooks)
	if isProvisioning {
		m.Profile, m.Image, m.Parameters, m.KernelArgs = wanted.Profile, wanted.Image, wanted.Parameters, wanted.KernelArgs
		m.Config, m.BootstrapFrom, m.RootDisk, m.KeepDisks = wanted.Config, wanted.BootstrapFrom, wanted.RootDisk, wanted.KeepDisks
	}
	if stored.HostID == "" {
		m.Placement, m.Pool, m.Hostname = wanted.Placement, wanted.Pool, wanted.Hostname
	}
	return m, !IsSame(stored, m)
}

// Frozen says which of the changes cannot be made any more, because a host is claimed; nil when all can.
func Frozen(stored, wanted inventory.Machine) error {
	if stored.HostID == "" {
		return nil
	}
	placement := stored.Placement
	placement.OnlyPools = wanted.Placement.OnlyPools // an admin says them, no object
	switch {
	case !IsSame(placement, wanted.Placement) || stored.Pool != wanted.Pool:
		return invalid("spec.placement", "cannot be changed once a host is claimed: delete the machine and create it again")
	case stored.Hostname != wanted.Hostname:
		return invalid("spec.hostname", "cannot be changed once a host is claimed: delete the machine and create it again")
	case isPlane(RoleOf(stored.Config)) != isPlane(RoleOf(wanted.Config)) && RoleOf(stored.Config) != "" && RoleOf(wanted.Config) != "":
		return invalid("spec.roles", "cannot be changed once a host is claimed: delete the machine and create it again")
	}
	return nil
}

// IsSame reports whether two things are stored as the same text.
func IsSame(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// Changed names the fields that the installed system does not have as they are wanted, sorted, with commas; "" for none.
// Fields that stay up to date on the node, and fields for the join target only, do not count.
func Changed(stored, wanted inventory.Machine) string {
	var fields []string
	for _, f := range []struct {
		name    string
		a, b    any
		isEmpty bool
	}{
		{"os.profile", stored.Profile, wanted.Profile, false},
		{"os.version", stored.Image, wanted.Image, false},
		{"os.variables", stored.Parameters, wanted.Parameters, len(stored.Parameters)+len(wanted.Parameters) == 0},
		{"os.kernelArgs", stored.KernelArgs, wanted.KernelArgs, len(stored.KernelArgs)+len(wanted.KernelArgs) == 0},
		{"providerConfig.rootDevice", stored.RootDisk, wanted.RootDisk, false},
		{"bootstrap.dataSecretName", stored.BootstrapFrom, wanted.BootstrapFrom, false},
	} {
		if !f.isEmpty && !IsSame(f.a, f.b) {
			fields = append(fields, f.name)
		}
	}
	a, b := installed(stored.Config), installed(wanted.Config)
	for _, part := range []struct {
		name string
		a, b any
	}{
		{"bootstrap", a.Bootstrap, b.Bootstrap},
		{"files", a.Files, b.Files},
		{"users", a.Users, b.Users},
		{"bootstrap.commands", a.Commands, b.Commands},
	} {
		if !IsSame(part.a, part.b) {
			fields = append(fields, part.name)
		}
	}
	a.Bootstrap, a.Files, a.Users, a.Commands = nil, nil, nil, nil
	b.Bootstrap, b.Files, b.Users, b.Commands = nil, nil, nil, nil
	if !IsSame(a, b) {
		fields = append(fields, "providerConfig.config")
	}
	slices.Sort(fields)
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("the installed system does not have the wanted %s", strings.Join(fields, ", "))
}

// installed is a configuration without what may change under an installed system.
func installed(text string) machineconfig.Config {
	c := parse(text)
	if c.Bootstrap != nil {
		c.Bootstrap.Role, c.Bootstrap.Labels, c.Bootstrap.Taints, c.Bootstrap.Options = "", nil, nil, nil
	}
	return c
}

func parse(text string) (c machineconfig.Config) {
	l, _ := layer.Parse(text, "machine")
	m, _ := layer.Merge(l)
	c = *m
	c.Provenance = nil
	return c
}

// RoleOf is the role in its cluster that a machine's configuration has, "" for none.
func RoleOf(text string) machineconfig.Role {
	if c := parse(text); c.Bootstrap != nil {
		return c.Bootstrap.Role
	}
	return ""
}

// NodeOf is what a machine's configuration says of the node that it becomes, nil when it becomes none.
func NodeOf(text string) *machineconfig.BootstrapSpec { return parse(text).Bootstrap }

// TargetOf is the join target that a machine's configuration names, "" for none.
func TargetOf(text string) string {
	if c := parse(text); c.Bootstrap != nil {
		return c.Bootstrap.Target
	}
	return ""
}

// WithRole is a machine's configuration with another role in its cluster.
func WithRole(text string, r machineconfig.Role) (string, error) {
	c := parse(text)
	if c.Bootstrap == nil || c.Bootstrap.Role == r {
		return text, nil
	}
	c.Bootstrap.Role = r
	b, err := yaml.Marshal(&c)
	return string(b), err
}
