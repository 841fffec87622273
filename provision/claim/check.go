package claim

import (
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/reference"
)

// preflight refuses a machine that could never be installed.
func preflight(tx inventory.Tx, m *inventory.Machine) error {
	i, err := imageOf(tx, m)
	if err != nil {
		return err
	}
	if i.IsDisk() {
		if _, err := tx.Images().Find(inventory.AgentImage(i.Arch)); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Conflict, "image %s is written by our agent, and there is no agent image for %s", i.Name, i.Arch).
				WithHint("make it with: slipway agent-image build")
		}
	}
	if m.Pool != "" && m.Pool != inventory.DefaultPool {
		if _, err := tx.Pools().Find(m.Pool); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "there is no pool %q", inventory.Clean(m.Pool, 64)).
				WithHint("list them with: slipway pool list")
		}
	}
	if m.Placement.Host != "" {
		if _, err := tx.FindHostByName(m.Placement.Host); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "there is no host %q", inventory.Clean(m.Placement.Host, 64)).
				WithHint("list them with: slipway host list")
		}
	}
	return checkWanted(tx, m)
}

// checkWanted checks what a machine refers to.
func checkWanted(tx inventory.Tx, m *inventory.Machine) error {
	if _, err := imageOf(tx, m); err != nil {
		return err
	}
	if x := m.Placement.Requirements.Expression; x != "" {
		if _, err := hardware.Compile(x); err != nil {
			return err
		}
	}
	if _, findings := layer.Parse(m.Config, originOf(m)); findings.HasErrors() {
		return findings.Err()
	}
	return reference.Machine(tx, m)
}

// originOf names a machine's own layer in findings and provenance.
func originOf(m *inventory.Machine) string { return "machine/" + m.Name }
