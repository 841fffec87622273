// Package talos owns what Slipway knows of Talos machine configurations. Its bootstrapper takes a finished one from a
// secret. Its provisioner hands it out, and merges a Config into a plain one. It never makes one: its keys belong to the
// owner of the cluster.
//
// Start reading at Emit and Render, then patch.go (what is merged where).
package talos

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Bootstrapper makes a machine what a secret machine configuration says.
type Bootstrapper struct{}

// New returns a Bootstrapper.
func New() *Bootstrapper { return &Bootstrapper{} }

// Kind is talos.
func (*Bootstrapper) Kind() string { return "talos" }

// Emit returns the configuration in the secret as a native document. It checks only that a machine will be able to read it.
// Without a secret the profile's own document has to be the configuration.
func (*Bootstrapper) Emit(in machineconfig.BootstrapInput) (*machineconfig.Activation, machineconfig.Requirements, error) {
	none := machineconfig.Requirements{}
	if in.Spec.Secret == "" {
		if in.Config == nil || in.Config.Document == nil {
			return nil, none, inventory.Errorf(inventory.Invalid, "/bootstrap/secret: which machine configuration?").
				WithHint("store one as a secret and name it here, or give the profile a document of format talos")
		}
		return nil, none, nil
	}
	if field := unusable(in.Spec); field != "" {
		return nil, none, inventory.Errorf(inventory.Invalid, "/bootstrap/%s: cannot be put into a secret machine configuration", field).
			WithHint("write it into the configuration itself")
	}
	if in.Secret != nil {
		docs, err := parse(in.Secret, true)
		if err != nil {
			return nil, none, inventory.Errorf(inventory.Invalid, "/bootstrap/secret: secret %s: %v", in.Spec.Secret, err).
				WithHint("check it with `talosctl validate --mode metal --config FILE`")
		}
		if err := checkRole(docs, in.Spec.Role); err != nil {
			return nil, none, err
		}
	}
	return &machineconfig.Activation{
		Kind:   "talos",
		Native: &machineconfig.Passthrough{Format: string(inventory.DocTalos), Data: []byte(late.Marker("secret://" + in.Spec.Secret))},
	}, none, nil
}

// unusable names the first field that only a plain configuration can take.
func unusable(s machineconfig.BootstrapSpec) string {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"labels", len(s.Labels) > 0},
		{"taints", len(s.Taints) > 0},
		{"kubeletArgs", len(s.KubeletArgs) > 0},
		{"nodeIP", s.NodeIP != ""},
		{"providerID", s.ProviderID != ""},
	} {
		if f.set {
			return f.name
		}
	}
	return ""
}

// checkRole refuses a configuration that makes another kind of machine than the profile says.
func checkRole(docs *documents, role machineconfig.Role) error {
	kind := scalar(lookup(docs.main, "machine", "type"))
	isControlPlane := kind == "controlplane" || kind == "init"
	if role != "" && isControlPlane != (role != machineconfig.Worker) {
		return inventory.Errorf(inventory.Invalid, "/bootstrap/role: the machine configuration makes a %s, not a %s", kind, role).
			WithHint("change bootstrap.role, or name the other configuration")
	}
	return nil
}

// isSecret reports whether a document is nothing but one marker: its text is not known before it is delivered.
func isSecret(data []byte) bool {
	text := strings.TrimSpace(string(data))
	refs := late.References([]byte(text))
	return len(refs) == 1 && text == late.Marker(refs[0])
}
