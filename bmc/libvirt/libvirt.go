// Package libvirt owns the power of virtual machines: a libvirt domain stands for a host, and a libvirt daemon for
// its controller. It never creates or removes domains. It changes nothing in the definition of a domain except the
// boot order, the CD-ROM drive and its own note.
//
// # Options of a libvirt BMC
//
// Address is a libvirt URI: qemu:///system (also when empty), qemu+unix:///system?socket=/path, unix:///path or
// qemu+tcp://host:16509/system. TCP has neither encryption nor authentication: use it on a network of its own, or
// forward the socket with ssh. System is the domain's name or UUID. There are no host options, no user and no
// password.
//
// # Boot overrides
//
// An override rewrites the boot order in the domain's inactive definition. The domain's metadata keep the former order,
// with a fresh id. A running machine with that id in its metadata was started with the override. So the override is used
// up, and the driver restores the former order, no matter who started the machine.
//
// Everything is in the definition, so that a restart of Slipway at any point loses nothing. Firmware mode is a part
// of the domain and cannot be overridden.
package libvirt

import (
	"context"
	"errors"
	"regexp"
	"slices"

	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

var uuidRE = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// Open makes a driver for a domain. It does not connect, so that its only error is Invalid.
func Open(t bmc.Target) (bmc.Driver, error) {
	at, err := parseAddress(t.Address)
	if err != nil {
		return nil, err
	}
	at.egress = t.Egress
	if t.System == "" {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: libvirt needs the name or UUID of the domain as system").WithHint("virsh list --all shows the domains")
	}
	for key := range t.Options {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: libvirt has no option %q", inventory.Clean(key, 40)).WithHint("it has none at all")
	}
	return &driver{s: newSession(at), at: at, system: t.System, macs: t.HostMACs}, nil
}

// driver powers one domain. Several goroutines may call it; the session runs one call at a time.
type driver struct {
	s      *session
	at     endpoint
	system string
	macs   []inventory.MAC
}

// Close ends the connection.
func (d *driver) Close() error {
	d.s.close()
	return nil
}

// domain is a domain and the connection to ask about it.
type domain struct {
	*golibvirt.Libvirt
	golibvirt.Domain
}

// with runs fn on the domain.
func (d *driver) with(ctx context.Context, fn func(m domain) error) error {
	return explain(d.s.do(ctx, func(l *golibvirt.Libvirt) error {
		dom, err := find(l, d.system)
		if err != nil {
			return err
		}
		return fn(domain{l, dom})
	}))
}

// find looks for a domain by its UUID, then by its name.
func find(l *golibvirt.Libvirt, system string) (golibvirt.Domain, error) {
	// A name may look like a UUID, so that only NotFound leads on to the names.
	if id, ok := parseUUID(system); ok {
		if dom, err := l.DomainLookupByUUID(id); err == nil || !golibvirt.IsNotFound(err) {
			return dom, err
		}
	}
	return l.DomainLookupByName(system)
}

// Power reads the power state. A paused machine is on, and a crashed one is off.
func (d *driver) Power(ctx context.Context) (is inventory.PowerState, err error) {
	is = inventory.PowerUnknown
	err = d.with(ctx, func(m domain) error {
		on, err := m.isOn()
		if err != nil {
			return err
		}
		if is = inventory.PowerOff; on {
			is = inventory.PowerOn
		}
		return nil
	})
	if err != nil {
		return inventory.PowerUnknown, err
	}
	return is, nil
}

func (m domain) isOn() (bool, error) {
	state, _, err := m.DomainGetState(m.Domain, 0)
	if err != nil {
		return false, err
	}
	switch golibvirt.DomainState(state) {
	case golibvirt.DomainShutoff, golibvirt.DomainCrashed, golibvirt.DomainNostate:
		return false, nil
	}
	return true, nil
}

// SetPower starts a change of power. An order that fits the present state already is a success without a call.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) error {
	if !slices.Contains([]bmc.Action{bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset}, a) {
		return inventory.Errorf(inventory.Invalid, "bmc: %q is not a change of power", inventory.Clean(string(a), 40))
	}
	return d.with(ctx, func(m domain) error {
		if err := m.mustStay(); err != nil {
			return err
		}
		if err := m.settle(); err != nil {
			return err
		}
		on, err := m.isOn()
		if err != nil {
			return err
		}
		switch {
		case a == bmc.On && !on, a == bmc.Cycle && !on:
			return m.start()
		case a == bmc.Cycle:
			return m.restart()
		case a == bmc.Off && on:
			return m.stop()
		case a == bmc.Shutdown && on:
			return unless(m.DomainShutdownFlags(m.Domain, golibvirt.DomainShutdownDefault), m, false)
		case a == bmc.Reset && on:
			return m.reset()
		}
		return nil
	})
}

// mustStay refuses a transient domain. libvirt forgets it the moment it is off, so that nothing could switch it on
// again.
func (m domain) mustStay() error {
	is, err := m.DomainIsPersistent(m.Domain)
	if err == nil && is == 0 {
		return inventory.Errorf(inventory.Invalid, "domain %s is transient: libvirt forgets it when it is off", inventory.Clean(m.Name, 80)).
			WithHint("make it persistent: virsh dumpxml %s > d.xml && virsh define d.xml", inventory.Clean(m.Name, 80))
	}
	return err
}

// start switches the machine on and restores the former boot order. It drops a managed save when an override is set:
// a restored machine would not boot, and so would not use the override.
func (m domain) start() error {
	state, _, err := m.DomainGetState(m.Domain, 0)
	if err != nil {
		return err
	}
	if golibvirt.DomainState(state) == golibvirt.DomainCrashed {
		if err := m.stop(); err != nil { // libvirt keeps a crashed machine in memory, for debugging
			return err
		}
	}
	def, err := m.inactive()
	if err != nil {
		return err
	}
	var flags golibvirt.DomainCreateFlags
	if def.override != nil {
		flags = golibvirt.DomainStartForceBoot
	}
	_, err = m.DomainCreateWithFlags(m.Domain, uint32(flags))
	// If the process dies here, the machine runs with the override, and the next call settles it.
	if err := unless(err, m, true); err != nil {
		return err
	}
	return m.settle()
}

// stop takes the power away at once. The guest gets no signal.
func (m domain) stop() error {
	return unless(m.DomainDestroyFlags(m.Domain, golibvirt.DomainDestroyDefault), m, false)
}

func (m domain) restart() error {
	if err := m.stop(); err != nil {
		return err
	}
	return m.start()
}

// reset restarts the machine. QEMU keeps the boot order of its start, so that an override that waits needs a fresh
// start.
func (m domain) reset() error {
	def, err := m.inactive()
	if err != nil {
		return err
	}
	if def.override != nil {
		live, err := m.definition(0)
		if err != nil {
			return err
		}
		if live.override == nil || live.override.ID != def.override.ID {
			return m.restart()
		}
	}
	return m.DomainReset(m.Domain, 0)
}

// unless drops the error of an order that came too late: the machine has the wanted state already.
func unless(err error, m domain, want bool) error {
	if e, ok := errors.AsType[golibvirt.Error](err); ok && golibvirt.ErrorNumber(e.Code) == golibvirt.ErrOperationInvalid {
		if on, e := m.isOn(); e == nil && on == want {
			return nil
		}
	}
	return err
}
