package power

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// Sealer seals what may not be stored in clear.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
}

// TryBMC runs fn with what is needed to connect to a controller that is not saved yet. An empty password stands for the one that is
// stored for the same driver, address and user. It changes nothing.
func (c *Controllers) TryBMC(ctx context.Context, b inventory.BMC, password string, fn func(bmc.Target, bmc.Opener) error) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if strings.ContainsFunc(password, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return inventory.Errorf(inventory.Invalid, "bmc: the password has a control character").WithHint("give one line, without its end")
	}
	if c.cfg.OpenBMC == nil {
		return nil
	}
	h, err := c.cfg.Ledger.FindHost(ctx, b.HostID)
	if err != nil {
		return err
	}
	if password == "" {
		if password, err = c.storedPassword(ctx, &b); err != nil {
			return err
		}
	}
	opened, err := c.OpenedOptions(b)
	if err != nil {
		return err
	}
	return fn(bmc.Target{BMC: opened, Password: password, HostName: h.Name, HostMACs: h.MACs()}, c.cfg.OpenBMC)
}

// storedPassword is the one that is stored for a controller and goes on to be used when b is saved without one; "" for none.
func (c *Controllers) storedPassword(ctx context.Context, b *inventory.BMC) (string, error) {
	var old inventory.BMC
	err := c.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		old, err = tx.FindBMC(b.HostID)
		return ledger.IgnoreNotFound(err)
	})
	// Another address gets no stored password: anyone who may change the address could else send it to a machine of his own.
	isSame := old.Address == b.Address && old.Driver == b.Driver && old.Username == b.Username
	if err != nil || !isSame || len(old.Sealed) == 0 {
		return "", err
	}
	password, err := c.cfg.Secrets.Open(SecretName(b.HostID), old.Sealed)
	return string(password), err
}

// Contradicts refuses a person's word that the host's own controller denies: a fence relies on it.
func (c *Controllers) Contradicts(ctx context.Context, id inventory.HostID, is inventory.PowerState) error {
	h, err := c.cfg.Ledger.FindHost(ctx, id)
	if err != nil {
		return err
	}
	p, err := c.Open(ctx, &h)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.IsHandy() {
		return nil
	}
	octx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	said, err := p.Driver.Power(octx)
	if err != nil || said == inventory.PowerUnknown || said == is {
		return nil // nobody else knows
	}
	return inventory.Errorf(inventory.Conflict, "the controller of %s says that it is %s", h.Name, said).
		WithHint("if the controller is wrong, take it away first: slipway host bmc %s --delete", h.Name)
}

// WithBMC runs fn with the driver of a host's controller. Nothing that fn does is part of an operation.
func (c *Controllers) WithBMC(ctx context.Context, id inventory.HostID, fn func(d bmc.Driver, b inventory.BMC) error) error {
	h, err := c.cfg.Ledger.FindHost(ctx, id)
	if err != nil {
		return err
	}
	p, err := c.Open(ctx, &h)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Err != nil {
		return p.Err
	}
	if p.Driver == nil {
		return inventory.Errorf(inventory.NotFound, "host %s has no controller", h.Name).WithHint("name it with: slipway host bmc %s --driver redfish --address https://...", h.Name)
	}
	return fn(p.Driver, p.Record)
}

// NoteCheck stores the result of a check of a host's controller that the engine did not start. It has the power, or the
// reason why that is unknown.
func (c *Controllers) NoteCheck(ctx context.Context, h inventory.Host, is inventory.PowerState, problem error, can []string, all inventory.LastCheck) {
	all.At = c.cfg.Now()
	if can != nil {
		err := c.editBMC(ctx, h.ID, func(b *inventory.BMC) { b.Capabilities = can })
		if err != nil {
			c.cfg.Log.Warn("what a controller can do is not stored", "host", h.Name, "err", err)
		}
	}
	c.notePower(ctx, &h, Access{}, is, problem, &all)
}

// NewPassword draws 16 characters, which is as long as IPMI 1.5 passwords may be; two of them meet the rules that
// some vendors have.
func NewPassword() (string, error) {
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	b := []byte("A7")
	for len(b) < 16 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", fmt.Errorf("draw a password: %w", err)
		}
		b = append(b, letters[n.Int64()])
	}
	return string(b), nil
}

// polls is when Slipway asks each controller next for power state and reachability.
type polls struct {
	mu   sync.Mutex
	next map[inventory.HostID]time.Time
}

func (p *polls) Soon(h inventory.HostID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, h)
}

// isDue reports whether it is time to ask a host's controller, and sets the next time.
func (p *polls) isDue(h inventory.HostID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[inventory.HostID]time.Time{}
	}
	if now.Before(p.next[h]) {
		return false
	}
	// Set before the answer: a controller that takes its 30 seconds is not asked twice at once.
	p.next[h] = now.Add(pollEvery)
	return true
}

const (
	pollEvery  = 2 * time.Minute
	pollAtOnce = 256
	pollFor    = 30 * time.Second // a controller that is slower counts as unreachable
	PollPage   = 500
)

// poll asks the controllers in turn until ctx is done. One that hangs holds one of pollAtOnce slots for pollFor, and nothing
// else.
func (c *Controllers) poll(ctx context.Context) error {
	slots := make(chan struct{}, pollAtOnce)
	var workers sync.WaitGroup
	// The workers use the store, which may be closed once this has returned.
	defer workers.Wait()
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		if err := c.PollOnce(ctx, slots, &workers); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("controllers not asked", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// PollOnce starts a request to each controller that is due. An error means that the list of controllers cannot be read.
func (c *Controllers) PollOnce(ctx context.Context, slots chan struct{}, workers *sync.WaitGroup) error {
	for after := ""; ; {
		page, err := inventory.Read(ctx, c.cfg.Store, func(tx inventory.Tx) ([]inventory.BMC, error) {
			return tx.ListBMCs(inventory.Page{After: after, Limit: PollPage})
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, b := range page {
			after = string(b.HostID)
			// Operations ask by themselves. A controller that refused the login is left alone, since each try may lock the
			// account.
			if b.Driver == inventory.Manual || c.cfg.IsBusy(b.HostID) || c.Logins.Held(&b, c.cfg.Now()) != nil || !c.Polls.isDue(b.HostID, c.cfg.Now()) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			workers.Go(func() {
				defer func() { <-slots }()
				octx, cancel := context.WithTimeout(ctx, pollFor)
				defer cancel()
				h, err := c.cfg.Ledger.FindHost(octx, b.HostID)
				if err != nil {
					return
				}
				p, err := c.Open(octx, &h)
				if err != nil {
					return
				}
				c.Read(octx, &h, &p)
				p.Close()
			})
		}
	}
}
