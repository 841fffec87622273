package fake

import (
	"context"
	"slices"
	"strconv"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Sensors returns the values of a small server. If the machine is off, its parts are cold and its fans do not turn.
func (d *driver) Sensors(ctx context.Context) ([]bmc.Sensor, error) {
	if _, err := d.call(ctx); err != nil {
		return nil, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	inlet := 21 + float64(d.c.calls%8)/2
	cpu, fan, watts := 0.0, 0.0, 9.0
	if d.c.power == inventory.PowerOn {
		cpu, fan, watts = inlet+25, 4200, 180
	}
	status := map[bool]string{true: "ok", false: "absent"}[cpu > 0]
	return []bmc.Sensor{
		{Name: "Inlet Temp", Kind: "temperature", Value: inlet, Unit: "°C", Status: "ok"},
		{Name: "CPU Temp", Kind: "temperature", Value: cpu, Unit: "°C", Status: status},
		{Name: "Fan 1", Kind: "fan", Value: fan, Unit: "rpm", Status: status},
		{Name: "Input Power", Kind: "power", Value: watts, Unit: "W", Status: "ok"},
	}, nil
}

// Health is always ok.
func (d *driver) Health(ctx context.Context) (string, error) {
	_, err := d.call(ctx)
	if err != nil {
		return "", err
	}
	return "ok", nil
}

// Log reads the changes of power, newest first.
func (d *driver) Log(ctx context.Context, limit int) ([]bmc.LogEntry, error) {
	if _, err := d.call(ctx); err != nil {
		return nil, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	all := slices.Clone(d.c.log)
	slices.Reverse(all)
	return all[:min(max(limit, 0), len(all))], nil
}

// ClearLog empties the log.
func (d *driver) ClearLog(ctx context.Context) error {
	f, err := d.call(ctx)
	if err != nil || f == Ignored {
		return err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.c.log = nil
	return nil
}

// ResetController restarts the controller, which loses nothing by it.
func (d *driver) ResetController(ctx context.Context) error {
	_, err := d.call(ctx)
	return err
}

// Inventory returns the parts of a small server.
func (d *driver) Inventory(ctx context.Context) (bmc.Inventory, error) {
	if _, err := d.call(ctx); err != nil {
		return bmc.Inventory{}, err
	}
	const gib = 1 << 30
	return bmc.Inventory{
		Vendor: "Slipway", Model: "Simulated controller", Firmware: "1.0",
		Hardware: inventory.Hardware{
			CollectedAt: d.bank.o.Clock.Now().UTC(), Source: "bmc",
			System:      inventory.System{Manufacturer: "Slipway", Product: "Simulated", Serial: inventory.Clean(d.c.system, 64)},
			CPU:         inventory.CPU{Arch: inventory.X8664, Vendor: "Simulated", Sockets: 1, Cores: 8, Threads: 16},
			MemoryBytes: 32 * gib,
			Disks:       []inventory.Disk{{Name: "Drive 1", Serial: inventory.Clean(d.c.system, 60) + "-1", SizeBytes: 480 * 1000 * 1000 * 1000, Transport: "nvme"}},
		},
	}, nil
}

// Users lists the accounts.
func (d *driver) Users(ctx context.Context) ([]bmc.User, error) {
	if _, err := d.call(ctx); err != nil {
		return nil, err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	var all []bmc.User
	for _, a := range d.c.accounts {
		all = append(all, a.User)
	}
	return all, nil
}

// CheckCredentials does what each call does.
func (d *driver) CheckCredentials(ctx context.Context) error {
	_, err := d.call(ctx)
	return err
}

// SetPassword changes an account's password. A driver of that account uses the new one from then on only when it is
// opened with it.
func (d *driver) SetPassword(ctx context.Context, user, password string) error {
	return d.account(ctx, user, func(i int) error {
		if i < 0 {
			return noAccount(user)
		}
		d.c.accounts[i].password = password
		return nil
	})
}

// CreateUser adds an administrator.
func (d *driver) CreateUser(ctx context.Context, user, password string) error {
	return d.account(ctx, user, func(i int) error {
		switch {
		case user == "" || password == "":
			return inventory.Errorf(inventory.Invalid, "bmc: an account needs a name and a password")
		case i >= 0:
			return inventory.Errorf(inventory.Conflict, "bmc: the controller has an account %q already", inventory.Clean(user, 40)).WithHint("set its password instead")
		case len(d.c.accounts) >= 16:
			return inventory.Errorf(inventory.Conflict, "bmc: the controller has no free slot for another account").WithHint("delete one first")
		}
		last := d.c.accounts[len(d.c.accounts)-1]
		id, _ := strconv.Atoi(last.ID)
		d.c.accounts = append(d.c.accounts, account{
			User:     bmc.User{ID: strconv.Itoa(id + 1), Name: user, Role: "administrator", Enabled: true},
			password: password,
		})
		return nil
	})
}

// DeleteUser removes an account; the last one stays.
func (d *driver) DeleteUser(ctx context.Context, user string) error {
	return d.account(ctx, user, func(i int) error {
		if i < 0 {
			return noAccount(user)
		}
		if len(d.c.accounts) == 1 {
			return inventory.Errorf(inventory.Conflict, "bmc: %q is the only account of the controller", inventory.Clean(user, 40))
		}
		d.c.accounts = slices.Delete(d.c.accounts, i, i+1)
		return nil
	})
}

// account calls fn under the lock with the place of an account, -1 when there is none.
func (d *driver) account(ctx context.Context, user string, fn func(i int) error) error {
	f, err := d.call(ctx)
	if err != nil || f == Ignored {
		return err
	}
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	return fn(slices.IndexFunc(d.c.accounts, func(a account) bool { return a.Name == user }))
}

func noAccount(user string) error {
	return inventory.Errorf(inventory.NotFound, "bmc: the controller has no account %q", inventory.Clean(user, 40))
}
