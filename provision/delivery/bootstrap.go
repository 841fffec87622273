package delivery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

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

const (
	// bootstrapSecret is the name under which a rendering refers to the data of its machine. A stored secret of that name is
	// not seen by machines that have such data.
	bootstrapSecret = "bootstrap-data"
	// BootstrapFor is how long data are kept that nobody asks for.
	BootstrapFor = 10 * time.Minute
	// WantedEvery is how often Slipway asks for the data of one machine at first, wantedSeldom after many tries without a
	// result.
	WantedEvery  = 5 * time.Second
	wantedSeldom = time.Minute
	maxBootstrap = inventory.MaxConfigBytes
)

// Bootstraps are the bootstrap data of machines, by their UIDs. They are secrets: they never leave memory but to the
// machine itself.
type Bootstraps struct {
	mu     sync.Mutex
	data   map[string]bootstrapData
	wanted map[string]asking
}

// asking is when data were asked for last, and how long nobody is bothered after that.
type asking struct {
	at    time.Time
	pause time.Duration
}

type bootstrapData struct {
	value     []byte
	format    string
	expiresAt time.Time
}

// digest stands for the data in keys and events.
func (d bootstrapData) digest() string {
	sum := sha256.Sum256(append([]byte(d.format+"\x00"), d.value...))
	return hex.EncodeToString(sum[:])
}

func (b *Bootstraps) put(uid string, d bootstrapData) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data == nil {
		b.data = map[string]bootstrapData{}
	}
	b.data[uid] = d
	delete(b.wanted, uid)
}

func (b *Bootstraps) find(uid string, now time.Time) (bootstrapData, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.data[uid]
	if ok && !now.Before(d.expiresAt) {
		delete(b.data, uid)
		return bootstrapData{}, false
	}
	return d, ok
}

// Has reports whether the data of a machine are here.
func (b *Bootstraps) Has(uid string, now time.Time) bool {
	_, ok := b.find(uid, now)
	return ok
}

// keep moves the end of data that are here.
func (b *Bootstraps) keep(uid string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, ok := b.data[uid]; ok {
		d.expiresAt = until
		b.data[uid] = d
	}
}

// Drop forgets the data of a machine.
func (b *Bootstraps) Drop(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.data, uid)
	delete(b.wanted, uid)
}

// Sweep drops what has ended.
func (b *Bootstraps) Sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, d := range b.data {
		if !now.Before(d.expiresAt) {
			delete(b.data, uid)
		}
	}
	for uid, a := range b.wanted {
		if now.Sub(a.at) > BootstrapFor {
			delete(b.wanted, uid)
		}
	}
}

// mayAsk reports whether it is time to ask for a machine's data again.
func (b *Bootstraps) mayAsk(uid string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.wanted[uid]
	if now.Sub(last.at) < last.pause {
		return false
	}
	if b.wanted == nil {
		b.wanted = map[string]asking{}
	}
	b.wanted[uid] = asking{now, min(max(WantedEvery, 2*last.pause), wantedSeldom)}
	return true
}

// GiveBootstrap takes the bootstrap data of a machine, which are kept in memory until they are delivered. With check
// nothing is kept. A *BootstrapError says that the machine could not boot with them.
func (dl *Deliverer) GiveBootstrap(ctx context.Context, name string, value []byte, format string, check bool) error {
	d := bootstrapData{value: bytes.Clone(value), format: format, expiresAt: dl.cfg.Now().Add(BootstrapFor)}
	var m inventory.Machine
	err := dl.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		if m.BootstrapFrom == "" {
			return inventory.Errorf(inventory.Conflict, "machine %s takes no bootstrap data", m.Name).WithHint("say where they come from: bootstrapFrom")
		}
		return dl.tryBootstrap(tx, &m, d)
	})
	if err != nil || check {
		return err
	}
	if _, had := dl.Bootstraps.find(m.UID, dl.cfg.Now()); !had {
		dl.cfg.Log.Info("bootstrap data received", "machine", m.Name, "bytes", len(value), "digest", d.digest()[:12])
	}
	dl.Bootstraps.put(m.UID, d)
	return dl.cfg.Given(ctx, m.HostID)
}

// tryBootstrap renders the machine with the data, on its host or one that stands for any, and returns what is wrong with
// them. What else may be wrong with its configuration shows when it is installed.
func (dl *Deliverer) tryBootstrap(tx inventory.Tx, m *inventory.Machine, d bootstrapData) error {
	if len(d.value) > maxBootstrap {
		return &BootstrapError{Reason: "UnsupportedFormat", Detail: fmt.Sprintf("the bootstrap data have %d bytes", len(d.value)), Hint: fmt.Sprintf("at most %d are allowed", maxBootstrap)}
	}
	if dl.cfg.Renderer == nil {
		return inventory.Errorf(inventory.Unavailable, "this server renders no configurations")
	}
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
	p, err := dl.cfg.Plan(tx, &h, "")
	if err != nil || p.Problem != nil || p.Profile == nil || p.Image == nil {
		return err // placement and installation say it
	}
	in, err := dl.cfg.Configurer.Inputs(tx, &h, p, configuration.BootMAC(&h))
	if err != nil {
		return err
	}
	in.Machine.Secret, in.Machine.SecretFormat, in.Machine.Digest = bootstrapSecret, d.format, d.digest()
	lendSecret(&in, d)
	for _, f := range dl.cfg.Renderer.Host(in).Findings {
		if f.Severity != machineconfig.SeverityError {
			continue
		}
		if b := bootstrapErrorOf(f); b != nil {
			return b
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
func (dl *Deliverer) MachineOf(tx inventory.Tx, h *inventory.Host, in *render.Input) error {
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
		in.Machine.ProviderID = dl.ProviderID(inventory.Claim{ID: m.ClaimID, HostID: h.ID})
	} else {
		in.Machine.ProviderID = dl.ProviderID(inventory.Claim{ID: inventory.ClaimID(noULID), HostID: h.ID})
	}
	if m.BootstrapFrom == "" {
		return nil
	}
	if d, ok := dl.Bootstraps.find(m.UID, dl.cfg.Now()); ok {
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
func (dl *Deliverer) ProviderID(c inventory.Claim) string {
	return c.ProviderID(dl.cfg.Site, string(c.HostID))
}

// Awaited is the problem that a machine's bootstrap data are not here, nil when they are or none are needed. It asks the
// sources that may have them.
func (dl *Deliverer) Awaited(tx inventory.Tx, h *inventory.Host, r *configuration.Rendered) (*inventory.Error, error) {
	if r == nil || r.WaitsFor == "" {
		return nil, nil
	}
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return nil, fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	if err := dl.wantBootstrap(tx, &m); err != nil {
		return nil, err
	}
	return inventory.Errorf(inventory.Unavailable, "waits for its bootstrap data from %s", r.WaitsFor).
		WithHint("the controller that manages machine %s gives them: see whether it runs and the secret is there", m.Name), nil
}

// wantBootstrap asks whoever has the bootstrap data of a machine for them.
func (dl *Deliverer) wantBootstrap(tx inventory.Tx, m *inventory.Machine) error {
	if !dl.Bootstraps.mayAsk(m.UID, dl.cfg.Now()) {
		return nil
	}
	return tx.AddEvent(&inventory.Event{
		At: dl.cfg.Now(), Kind: inventory.EventBootstrapWanted, HostID: m.HostID, Subject: "machine/" + m.Name,
		Detail: inventory.Clean("its boot waits for the bootstrap data from "+m.BootstrapFrom, 500), Data: ledger.MachineData(m, map[string]any{"from": m.BootstrapFrom}),
	})
}

// bootstrapValue returns the data that a rendering refers to, when they are delivered.
func (dl *Deliverer) bootstrapValue(ctx context.Context, d *delivery) (value []byte, isOurs bool, err error) {
	if d.host.Machine == "" {
		return nil, false, nil
	}
	var m inventory.Machine
	err = dl.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		m, err = tx.FindMachine(d.host.Machine)
		return err
	})
	if err != nil || m.BootstrapFrom == "" {
		return nil, false, err
	}
	b, ok := dl.Bootstraps.find(m.UID, dl.cfg.Now())
	if !ok {
		err := dl.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return dl.wantBootstrap(tx, &m) })
		if err == nil {
			err = inventory.Errorf(inventory.Unavailable, "the bootstrap data of machine %s are not here any more; Slipway asks for them again", m.Name).
				WithHint("it asks again by itself; else boot it again")
		}
		return nil, true, err
	}
	if !d.IsPeek {
		dl.Bootstraps.keep(m.UID, dl.cfg.Now().Add(AgainFor))
	}
	return b.value, true, nil
}

// isAwaited reports whether a problem goes away by itself: the machine waits for data, or for its turn.
func IsAwaitedProblem(p pxe.Plan) bool {
	return p.Problem != nil && p.Problem.Kind == inventory.Unavailable
}
