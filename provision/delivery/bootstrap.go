package delivery

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// BootstrapError says why a machine cannot boot with the bootstrap data that it was given.
type BootstrapError = contract.BootstrapError

// BootstrapConfig is everything a Bootstrapper needs.
type BootstrapConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Configurer     *configuration.Configurer
	Renderer       *render.Renderer // nil: nothing can be tried
	Site           string           // the first part of provider ids
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// Given is called after the bootstrap data of a machine have come, with its host, which is "" before it has one.
	Given func(context.Context, inventory.HostID) error
}

// Bootstrapper takes the bootstrap data of machines, tries them, and asks for those that a boot waits for. Its methods may be
// called from many goroutines, once it is configured.
type Bootstrapper struct {
	Bootstraps Bootstraps
	cfg        BootstrapConfig
}

// Configure gives a Bootstrapper what it needs.
func (b *Bootstrapper) Configure(cfg BootstrapConfig) { b.cfg = cfg }

// GiveBootstrap takes the bootstrap data of a machine, which are kept in memory until they are delivered. With check
// nothing is kept. A *BootstrapError says that the machine could not boot with them.
func (b *Bootstrapper) GiveBootstrap(ctx context.Context, name string, value []byte, format string, check bool) error {
	d := bootstrapData{value: bytes.Clone(value), format: format, expiresAt: b.cfg.Now().Add(BootstrapFor)}
	var m inventory.Machine
	err := b.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		if m.BootstrapFrom == "" {
			return inventory.Errorf(inventory.Conflict, "machine %s takes no bootstrap data", m.Name).WithHint("say where they come from: bootstrapFrom")
		}
		return b.tryBootstrap(tx, &m, d)
	})
	if err != nil || check {
		return err
	}
	// A controller may give the same data again. The log has one line for them.
	if _, had := b.Bootstraps.find(m.UID, b.cfg.Now()); !had {
		b.cfg.Log.Info("bootstrap data received", "machine", m.Name, "bytes", len(value), "digest", d.digest()[:12])
	}
	b.Bootstraps.put(m.UID, d)
	return b.cfg.Given(ctx, m.HostID)
}

// tryBootstrap renders the machine with the data, on its host or one that stands for any, and returns what is wrong with
// them. What else may be wrong with its configuration shows when it is installed.
func (b *Bootstrapper) tryBootstrap(tx inventory.Tx, m *inventory.Machine, d bootstrapData) error {
	// Checked before the data are rendered, which takes time and memory.
	if len(d.value) > maxBootstrap {
		return &BootstrapError{Reason: "UnsupportedFormat", Detail: fmt.Sprintf("the bootstrap data have %d bytes", len(d.value)), Hint: fmt.Sprintf("at most %d are allowed", maxBootstrap)}
	}
	if b.cfg.Renderer == nil {
		return inventory.Errorf(inventory.Unavailable, "this server renders no configurations")
	}
	// A machine without a host is tried on one that does not exist. Its MAC is from the range for local use.
	h := inventory.Host{
		ID: "00000000-0000-0000-0000-000000000000", Name: "any", State: inventory.Installing, Machine: m.Name, Arch: inventory.X8664,
		NICs: []inventory.NIC{{MAC: "02:00:00:00:00:01", IsBoot: true}},
	}
	if m.HostID != "" {
		stored, err := tx.FindHost(m.HostID)
		if err != nil {
			return fmt.Errorf("read host of machine %s: %w", m.Name, err)
		}
		h = stored
	}
	p, err := b.cfg.Plan(tx, &h, "")
	if err != nil || p.Problem != nil || p.Profile == nil || p.Image == nil {
		return err // placement and installation say it
	}
	in, err := b.cfg.Configurer.Inputs(tx, &h, p, configuration.BootMAC(&h))
	if err != nil {
		return err
	}
	// The name stands for the data. A rendering that is stored has their digest only.
	in.Machine.Secret, in.Machine.SecretFormat, in.Machine.Digest = bootstrapSecret, d.format, d.digest()
	lendSecret(&in, d)
	for _, f := range b.cfg.Renderer.Host(in).Findings {
		if f.Severity != machineconfig.SeverityError {
			continue
		}
		if problem := bootstrapErrorOf(f); problem != nil {
			return problem
		}
	}
	return nil
}

// bootstrapErrorOf makes of a finding what is wrong with bootstrap data, nil when it is about something else.
func bootstrapErrorOf(f machineconfig.Finding) *BootstrapError {
	if f.Path != "/bootstrap" && !strings.HasPrefix(f.Path, "/bootstrap/") && f.Code != "no-format" {
		return nil
	}
	b := &BootstrapError{Reason: "InvalidBootstrapData", Detail: inventory.Clean(f.Message, 500), Hint: inventory.Clean(f.Hint, 300)}
	switch f.Code {
	case "unsupported-format", "no-format":
		b.Reason = "UnsupportedFormat"
	case "unsupported-directive":
		b.Reason = "UnsupportedDirective"
	}
	return b
}

// lendSecret lets a rendering look into bootstrap data.
func lendSecret(in *render.Input, d bootstrapData) {
	has, open := in.HasSecret, in.Secret
	in.HasSecret = func(name string) bool { return name == bootstrapSecret || has(name) }
	in.Secret = func(name string) ([]byte, error) {
		if name == bootstrapSecret {
			return d.value, nil
		}
		return open(name)
	}
}

// MachineOf adds to the inputs of a rendering what the machine says that has the host.
func (b *Bootstrapper) MachineOf(tx inventory.Tx, h *inventory.Host, in *render.Input) error {
	if h.Machine == "" {
		return nil
	}
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	in.Machine = &render.Machine{Origin: "machine/" + m.Name, Config: m.Config, SavedByAdmin: m.SavedByAdmin, Zone: h.Place.Domain(), BootstrapFrom: m.BootstrapFrom}
	_, in.Machine.Domain, _ = strings.Cut(m.Hostname, ".")
	in.Machine.Labels = map[string]string{labelPrefix + "machine": m.Name, labelPrefix + "host": h.Name, labelPrefix + "pool": cmp.Or(m.Pool, inventory.DefaultPool)}
	if domain := labelValue(h.Place.Domain()); domain != "" {
		in.Machine.Labels[labelPrefix+"failure-domain"] = domain
	}
	if m.ClaimID != "" {
		in.Machine.ProviderID = b.ProviderID(inventory.Claim{ID: m.ClaimID, HostID: h.ID})
	} else {
		in.Machine.ProviderID = b.ProviderID(inventory.Claim{ID: inventory.ClaimID(noULID), HostID: h.ID})
	}
	if m.BootstrapFrom == "" {
		return nil
	}
	if d, ok := b.Bootstraps.find(m.UID, b.cfg.Now()); ok {
		in.Machine.Secret, in.Machine.SecretFormat, in.Machine.Digest = bootstrapSecret, d.format, d.digest()
		lendSecret(in, d)
	}
	return nil
}

const (
	// labelPrefix is what our labels of nodes begin with.
	labelPrefix = "metal.slipway.dev/"
	// noULID stands for the claim of a machine that has none yet.
	noULID = "00000000000000000000000000"
)

// labelValue is a text as the value of a label may be.
func labelValue(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, s)
	return strings.Trim(s[:min(len(s), 63)], "-_.")
}

// ProviderID is how the Kubernetes node on a claim is known. It has the host's id and not its name, which may change.
func (b *Bootstrapper) ProviderID(c inventory.Claim) string {
	return c.ProviderID(b.cfg.Site, string(c.HostID))
}

// Awaited is the problem that a machine's bootstrap data are not here, nil when they are or none are needed.
func (b *Bootstrapper) Awaited(tx inventory.Tx, h *inventory.Host, r *configuration.Rendered) (*inventory.Error, error) {
	if r == nil || r.WaitsFor == "" {
		return nil, nil
	}
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return nil, fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	return inventory.Errorf(inventory.Unavailable, "waits for its bootstrap data from %s", r.WaitsFor).
		WithHint("the controller that manages machine %s gives them: see whether it runs and the secret is there", m.Name), nil
}

// AskForBootstrap asks the controllers for the bootstrap data of a host's machine.
func (b *Bootstrapper) AskForBootstrap(tx inventory.Tx, h *inventory.Host) error {
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	return b.wantBootstrap(tx, &m)
}

// wantBootstrap asks whoever has the bootstrap data of a machine for them.
func (b *Bootstrapper) wantBootstrap(tx inventory.Tx, m *inventory.Machine) error {
	// Each look at a waiting boot comes here, every few seconds. The controllers hear about it less and less often.
	if !b.Bootstraps.mayAsk(m.UID, b.cfg.Now()) {
		return nil
	}
	return tx.AddEvent(&inventory.Event{
		At: b.cfg.Now(), Kind: inventory.EventBootstrapWanted, HostID: m.HostID, Subject: "machine/" + m.Name,
		Detail: inventory.Clean("its boot waits for the bootstrap data from "+m.BootstrapFrom, 500), Data: ledger.MachineData(m, map[string]any{"from": m.BootstrapFrom}),
	})
}

// valueFor returns the data that a rendering refers to, when they are delivered.
func (b *Bootstrapper) valueFor(ctx context.Context, d *delivery) (value []byte, isOurs bool, err error) {
	if d.host.Machine == "" {
		return nil, false, nil
	}
	var m inventory.Machine
	err = b.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		m, err = tx.FindMachine(d.host.Machine)
		return err
	})
	if err != nil || m.BootstrapFrom == "" {
		return nil, false, err
	}
	data, ok := b.Bootstraps.find(m.UID, b.cfg.Now())
	if !ok {
		err := b.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return b.wantBootstrap(tx, &m) })
		if err == nil {
			err = inventory.Errorf(inventory.Unavailable, "the bootstrap data of machine %s are not here any more; Slipway asks for them again", m.Name).
				WithHint("it asks again by itself; else boot it again")
		}
		return nil, true, err
	}
	// After a fetch the data live as long as the machine may fetch again, and no longer.
	if !d.IsPeek {
		b.Bootstraps.keep(m.UID, b.cfg.Now().Add(AgainFor))
	}
	return data.value, true, nil
}

// isAwaited reports whether a problem goes away by itself: the machine waits for data, or for its turn.
func IsAwaitedProblem(p pxe.Plan) bool {
	return p.Problem != nil && p.Problem.Kind == inventory.Unavailable
}
