package fake

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// driver is one session with a controller.
type driver struct {
	bank           *Bank
	c              *controller
	user, password string
	delay          time.Duration
	fault          Fault
}

// call is what every call begins with: the wait, and the faults that stop it. It returns the fault that the call has to
// carry out itself: Ignored, Lies or HalfApplied.
func (d *driver) call(ctx context.Context) (Fault, error) {
	f, wait, ok := d.draw()
	switch f {
	case Slow:
		wait += d.bank.o.SlowFor
	case Unreachable:
		ok = true // nobody asks for a password
	}
	if err := ctx.Err(); err != nil {
		return f, inventory.Errorf(inventory.Unavailable, "Slipway did not ask the controller: %v", err)
	}
	if wait > 0 {
		if err := d.bank.o.Clock.Sleep(ctx, wait); err != nil {
			return f, inventory.Errorf(inventory.Unavailable, "the controller did not answer in time: %v", err).
				WithHint("it may be overloaded; Slipway asks it again")
		}
	}
	switch {
	case f == Unreachable:
		return f, inventory.Errorf(inventory.Unavailable, "the controller of %s does not answer", d.c.system).WithHint("is it plugged in?")
	case f == Unauthorized, !ok:
		return f, inventory.Errorf(inventory.Unauthorized, "the controller of %s refuses user %q and its password", d.c.system, inventory.Clean(d.user, 40)).
			WithHint("slipway host bmc NAME --username USER --password-file FILE")
	case f == Busy:
		return f, inventory.Errorf(inventory.Unavailable, "the controller of %s is busy", d.c.system).WithHint("Slipway asks it again")
	}
	return f, nil
}

// draw decides under the lock how this call goes. It always uses up the same amount of chance, so that runs with the
// same seed stay alike.
func (d *driver) draw() (f Fault, wait time.Duration, isKnown bool) {
	o, c := d.bank.o, d.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	roll, stretch := c.chance.Float64(), c.chance.Float64()
	for _, one := range Faults() {
		if roll -= o.Rates[one]; roll < 0 {
			f = one
			break
		}
	}
	// Faults that are set come after the draw, so that they use up as much chance as none.
	if len(c.script) > 0 {
		f, c.script = c.script[0], c.script[1:]
	}
	for _, lasting := range []Fault{c.broken, d.fault} {
		if lasting != Fine {
			f = lasting
		}
	}
	return f, d.delay + o.Delay + time.Duration(stretch*float64(o.Delay)), d.isLetIn()
}

// isLetIn checks the credentials, under the lock.
func (d *driver) isLetIn() bool {
	return slices.ContainsFunc(d.c.accounts, func(a account) bool {
		return a.password == "" || a.Name == d.user && a.password == d.password && a.Enabled
	})
}

// Power reads the power state.
func (d *driver) Power(ctx context.Context) (inventory.PowerState, error) {
	f, err := d.call(ctx)
	if err != nil {
		return inventory.PowerUnknown, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if f != Lies {
		return d.c.power, nil
	}
	if d.c.power == inventory.PowerOn {
		return inventory.PowerOff, nil
	}
	return inventory.PowerOn, nil
}

// SinceRestart returns how long ago the machine was switched on or restarted.
func (d *driver) SinceRestart(ctx context.Context) (time.Duration, error) {
	if _, err := d.call(ctx); err != nil {
		return 0, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if d.c.turnedAt.IsZero() {
		return 0, inventory.Errorf(inventory.NotFound, "the machine of %s has not restarted yet", d.c.system)
	}
	return d.bank.o.Clock.Now().Sub(d.c.turnedAt), nil
}

// SetPower gives an order.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) error {
	if !slices.Contains([]bmc.Action{bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset}, a) {
		return inventory.Errorf(inventory.Invalid, "bmc: %q is not a change of power", inventory.Clean(string(a), 40))
	}
	f, err := d.call(ctx)
	if err != nil || f == Ignored {
		return err
	}
	d.bank.obey(d.c, a, f == HalfApplied)
	if f == HalfApplied {
		return inventory.Errorf(inventory.Unavailable, "the controller of %s broke off in the middle of %s", d.c.system, a).WithHint("Slipway asks it again")
	}
	return nil
}

// Close ends nothing: there is no session.
func (d *driver) Close() error { return nil }

// SetBoot sets the override.
func (d *driver) SetBoot(ctx context.Context, b bmc.Boot) error {
	if !slices.Contains([]bmc.Device{bmc.None, bmc.PXE, bmc.HTTP, bmc.Disk, bmc.Virtual, bmc.Setup}, b.Device) {
		return inventory.Errorf(inventory.Invalid, "bmc: %q is nothing to boot from", inventory.Clean(string(b.Device), 40))
	}
	f, err := d.call(ctx)
	if err != nil || f == Ignored {
		return err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if b.Device == bmc.None {
		b = bmc.Boot{Device: bmc.None}
	}
	// As real ones do: an override without a mode keeps the one that is set.
	b.Mode = cmp.Or(b.Mode, d.c.boot.Mode)
	if f == HalfApplied {
		b.Mode, b.URI = d.c.boot.Mode, ""
		d.c.boot = b
		return inventory.Errorf(inventory.Unavailable, "the controller of %s broke off in the middle of a setting", d.c.system).WithHint("Slipway asks it again")
	}
	d.c.boot = b
	return nil
}

// Boot reads the override.
func (d *driver) Boot(ctx context.Context) (bmc.Boot, error) {
	f, err := d.call(ctx)
	if err != nil || f == Lies {
		return bmc.Boot{Device: bmc.None}, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.c.boot, nil
}

// InsertMedia puts an image into the virtual drive.
func (d *driver) InsertMedia(ctx context.Context, link string) error {
	if u, err := url.Parse(link); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return inventory.Errorf(inventory.Invalid, "bmc: %q is not the URL of an image", inventory.Clean(link, 80)).WithHint("it begins with http:// or https://")
	}
	return d.setMedia(ctx, link)
}

// EjectMedia empties the virtual drive.
func (d *driver) EjectMedia(ctx context.Context) error { return d.setMedia(ctx, "") }

func (d *driver) setMedia(ctx context.Context, link string) error {
	f, err := d.call(ctx)
	if err != nil || f == Ignored {
		return err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.c.media = link
	return nil
}

// Media reads what the virtual drive holds.
func (d *driver) Media(ctx context.Context) (string, error) {
	if _, err := d.call(ctx); err != nil {
		return "", err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return d.c.media, nil
}

// Locate lights the identify LED.
func (d *driver) Locate(ctx context.Context, on bool) error {
	f, err := d.call(ctx)
	if err != nil || f == Ignored {
		return err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.c.isLit = on
	return nil
}

// Console opens a console that answers each line with the state of the machine.
func (d *driver) Console(ctx context.Context) (io.ReadWriteCloser, error) {
	if _, err := d.call(ctx); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	return &console{d: d, r: r, w: w}, nil
}

type console struct {
	d    *driver
	r    *io.PipeReader
	w    *io.PipeWriter
	mu   sync.Mutex // orders what is shown
	show sync.WaitGroup
}

func (k *console) Read(p []byte) (int, error) { return k.r.Read(p) }

// Write takes the typed text at once. The console answers when the reader reads, so that Write never waits.
func (k *console) Write(p []byte) (int, error) {
	text := fmt.Sprintf("%s: power %s\r\n", k.d.c.system, k.d.bank.Power(k.d.c.system))
	// Each line waits for the reader in a goroutine of its own, and mu keeps one line whole.
	k.show.Go(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		_, _ = io.WriteString(k.w, text)
	})
	return len(p), nil
}

func (k *console) Close() error {
	_ = k.r.Close()
	_ = k.w.Close()
	k.show.Wait()
	return nil
}
