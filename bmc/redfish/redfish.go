package redfish

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// Options that inventory.BMC.Options may hold for this driver.
const (
	// OptionTimeout bounds each request, such as 45s; 30s when absent.
	OptionTimeout = "timeout"
	// OptionAuth is session or basic. When absent, the driver tries a session, and uses basic if the controller has
	// none.
	OptionAuth = "auth"
)

// driver powers one system of one Redfish service. Several goroutines may call it. mu guards path and identity and is
// never held during a request; the connection has its own lock.
type driver struct {
	*connection
	want string // the system's id, "" when there is one

	mu       sync.Mutex
	path     string    // of the system, once it is known
	identity *identity // of the controller, once it is known

	// looks is how often, and every how long, the driver looks for a boot override or an image until it counts as ignored.
	looks int
	every time.Duration
	sleep func(context.Context, time.Duration) error
}

var (
	_ bmc.Opener          = Open
	_ bmc.Booter          = (*driver)(nil)
	_ bmc.MediaMounter    = (*driver)(nil)
	_ bmc.Locator         = (*driver)(nil)
	_ bmc.SensorReader    = (*driver)(nil)
	_ bmc.LogReader       = (*driver)(nil)
	_ bmc.InventoryReader = (*driver)(nil)
	_ bmc.UserManager     = (*driver)(nil)

	_ bmc.ControllerResetter = (*driver)(nil)
	_ bmc.Asker              = (*driver)(nil)
)

// Open makes a driver for the system that a target names. It checks the target and connects to nothing, so that its
// only error is Invalid.
func Open(t bmc.Target) (bmc.Driver, error) { return open(t) }

func open(t bmc.Target) (*driver, error) {
	u, err := url.Parse(t.Address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: the address is not the URL of a Redfish controller").
			WithHint("write it as https://10.0.0.5, and user and password in fields of their own")
	}
	for key := range t.Options {
		if key != OptionTimeout && key != OptionAuth {
			return nil, inventory.Errorf(inventory.Invalid, "bmc: redfish has no option %q", inventory.Clean(key, 40)).WithHint("its options are %s and %s", OptionAuth, OptionTimeout)
		}
	}
	timeout := 30 * time.Second
	if text := t.Options[OptionTimeout]; text != "" {
		timeout, err = time.ParseDuration(text)
		if err != nil || timeout < time.Second || timeout > 5*time.Minute {
			return nil, inventory.Errorf(inventory.Invalid, "option timeout: %q is not between 1s and 5m", inventory.Clean(text, 40))
		}
	}
	auth := t.Options[OptionAuth]
	if auth != "" && auth != "session" && auth != "basic" {
		return nil, inventory.Errorf(inventory.Invalid, "option auth: %q is neither session nor basic", inventory.Clean(auth, 40))
	}
	c, err := newConnection(&url.URL{Scheme: u.Scheme, Host: u.Host}, t, timeout)
	if err != nil {
		return nil, err
	}
	c.auth = auth
	// Six looks in ten seconds: most controllers show a change within three, and the caller's own deadline is some minutes. Path
	// and query of the address are dropped, since the service always begins at rootPath.
	return &driver{connection: c, want: t.System, looks: 6, every: 2 * time.Second, sleep: sleep.For}, nil
}

// system reads the ComputerSystem of the target, and finds it at the first call. Each call reads it again: power and
// boot override change at any time.
func (d *driver) system(ctx context.Context) (*system, error) {
	d.mu.Lock()
	path := d.path
	d.mu.Unlock()
	if path == "" {
		var err error
		if path, err = d.findSystem(ctx); err != nil {
			return nil, err
		}
	}
	s := &system{}
	// Two goroutines may both have found the path. They found the same one, so that the last write does no harm.
	if err := d.read(ctx, path, s); err != nil {
		if bmc.KindOf(err) == inventory.NotFound {
			d.mu.Lock()
			// A reset of the controller may give systems new paths. The next call searches again.
			d.path = ""
			d.mu.Unlock()
		}
		return nil, err
	}
	// The path is that of the request: @odata.id differs on some services.
	s.ID, s.PowerState = path, powerWord(s.PowerState)
	d.mu.Lock()
	d.path = path
	d.mu.Unlock()
	return s, nil
}

// findSystem chooses among the systems of the service by id, UUID, serial number or name.
func (d *driver) findSystem(ctx context.Context) (string, error) {
	root, err := d.root(ctx)
	if err != nil {
		return "", err
	}
	if root.Systems.ID == "" {
		return "", inventory.Errorf(inventory.NotFound, "the controller at %s has no systems", d.host()).
			WithHint("it may be the manager of a chassis: use the address of the server's own controller")
	}
	paths, err := d.links(ctx, root.Systems.ID)
	if err != nil {
		return "", err
	}
	if len(paths) == 1 && d.want == "" {
		return paths[0], nil
	}
	var names []string
	// Documents are read one by one, and only now: on a chassis of 16 blades this takes as many requests.
	var unread error
	for _, path := range paths {
		id := lastSegment(path)
		if d.want != "" && id == d.want {
			return path, nil
		}
		// The id at the end of a path needs no request. Only if none fits are the documents read below.
		names = append(names, inventory.Clean(id, 80))
	}
	if d.want == "" && len(paths) > 1 {
		return "", inventory.Errorf(inventory.Invalid, "the controller at %s has %d systems: %s", d.host(), len(paths), inventory.Clean(strings.Join(names, ", "), 400)).
			WithHint("choose one of them as the BMC's system")
	}
	for _, path := range paths {
		var s system
		if err := d.read(ctx, path, &s); err != nil {
			if fatal := d.omit(ctx, path, err); fatal != nil {
				return "", fatal
			}
			unread = err
			continue
		}
		for _, name := range []string{s.UUID, s.SerialNumber, s.HostName, s.Name} {
			if name != "" && strings.EqualFold(name, d.want) {
				return path, nil
			}
		}
	}
	if unread != nil && bmc.KindOf(unread) != inventory.NotFound {
		return "", unread // it may be that one
	}
	return "", inventory.Errorf(inventory.NotFound, "the controller at %s has no system %q", d.host(), inventory.Clean(d.want, 80)).
		WithHint("it has: %s", inventory.Clean(strings.Join(names, ", "), 400))
}

// behaviour returns what is special about this controller, by the table of quirks.
func (d *driver) behaviour(ctx context.Context, s *system) (behaviour, error) {
	id, err := d.identify(ctx, s)
	if err != nil {
		return behaviour{}, err
	}
	return behaviourOf(*id), nil
}

// identify finds the maker of the controller and its firmware, which the table of quirks needs. When the manager
// cannot be read, its part stays empty and the next call asks again. Only an error that ends every call ends this
// one.
func (d *driver) identify(ctx context.Context, s *system) (*identity, error) {
	d.mu.Lock()
	known := d.identity
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	root, err := d.root(ctx)
	if err != nil {
		return nil, err
	}
	// The service root names the vendor of the controller's firmware, the system the one of the board. Quirks follow firmware.
	id := &identity{vendor: vendorOf(root, s.Manufacturer), product: root.Product, system: s.Model}
	m, err := d.manager(ctx, s)
	if err != nil {
		// Nothing is stored: the next call may find the manager, and with it the firmware's quirks.
		if kind := bmc.KindOf(err); kind == inventory.Unauthorized || ctx.Err() != nil {
			return nil, err
		}
		return id, nil
	}
	id.model, id.firmware = m.Model, m.FirmwareVersion
	d.mu.Lock()
	d.identity = id
	d.mu.Unlock()
	return id, nil
}

// manager reads the controller's own document.
func (d *driver) manager(ctx context.Context, s *system) (*manager, error) {
	path := ""
	// A chassis with several servers has one manager for each. The first of the whole collection may be a neighbour's.
	if len(s.Links.ManagedBy) > 0 {
		path = s.Links.ManagedBy[0].ID
	} else {
		root, err := d.root(ctx)
		if err != nil {
			return nil, err
		}
		paths, err := d.links(ctx, root.Managers.ID)
		if err != nil {
			return nil, err
		}
		if len(paths) > 0 {
			path = paths[0]
		}
	}
	if path == "" {
		return nil, inventory.Errorf(inventory.NotFound, "the controller at %s tells nothing of itself", d.host())
	}
	m := &manager{}
	return m, d.read(ctx, path, m)
}
