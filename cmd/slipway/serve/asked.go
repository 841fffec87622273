package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
)

// asked is what became of the question for other DHCP servers in the network of an interface. With an error nobody knows
// whether there are others.
type asked struct {
	servers []netip.Addr
	err     error
}

// notAsked is the result for an interface without a check.
var notAsked = asked{err: errors.New("no check was made there yet")}

// ask asks on an interface for other DHCP servers. Through an interface without link the question goes nowhere, so its
// silence means nothing.
func (c *Config) ask(ctx context.Context, iface string) asked {
	if err := linkFault(doctor.ReadInterface(iface)); err != nil {
		return asked{err: err}
	}
	servers, err := c.foreign(ctx, iface)
	return asked{servers, err}
}

// without leaves other instances of Slipway out: they share the subnets of this one. nil: there are none.
func (a asked) without(instances func() []netip.Addr) asked {
	if instances != nil {
		all := instances()
		a.servers = slices.DeleteFunc(a.servers, func(s netip.Addr) bool { return slices.Contains(all, s) })
	}
	return a
}

// linkFault says why a check on an interface is not possible, nil when it is.
func linkFault(i doctor.Interface) error {
	switch {
	case i.Err != nil:
		return i.Err
	case !i.IsThere:
		return fmt.Errorf("%s does not exist", i.Name)
	case !i.IsUp:
		return fmt.Errorf("%s is down", i.Name)
	case !i.HasLink:
		return fmt.Errorf("%s has no link", i.Name)
	}
	return nil
}

// isReady reports whether the subnet of an interface can be made now: it has an address and, where a start decides on the
// mode by itself, a link to ask on.
func (c *Config) isReady(i doctor.Interface) bool {
	return len(i.Prefixes) > 0 && (c.Mode != modeAuto || linkFault(i) == nil)
}

// modeOf is the mode that a start chooses: full only where it asked for other DHCP servers and heard none.
func (c *Config) modeOf(others asked) inventory.SubnetMode {
	switch {
	case c.Mode != modeAuto:
		return inventory.SubnetMode(c.Mode)
	// Two servers that lease from one network give one address to two machines. Where nobody knows, none is leased.
	case others.err != nil || len(others.servers) > 0:
		return inventory.ModeReservations
	}
	return inventory.ModeFull
}

const (
	modeAuto = "auto"
	// unaskedFile lists the subnets whose network could not be asked for other DHCP servers.
	unaskedFile = "unasked.json"
)

// unasked are the subnets that a start made without an answer, by name, with the time when each was made. The next start
// asks again, unless somebody has changed the subnet since.
type unasked map[string]time.Time

// has reports whether a subnet is still as a start made it without an answer. Version 1 means that nobody has edited it; the
// time tells it from a later subnet of the same name.
func (u unasked) has(s inventory.Subnet) bool {
	at, isListed := u[s.Name]
	return isListed && at.Equal(s.CreatedAt) && s.Version == 1 && s.Mode == inventory.ModeReservations
}

func readUnasked(dir string) (unasked, error) {
	all := unasked{}
	text, err := os.ReadFile(filepath.Join(dir, unaskedFile))
	// Most installations never have this file: each network answered, or the admin chose the mode.
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return unasked{}, fmt.Errorf("read the networks that could not be checked for other DHCP servers: %w", err)
	}
	return all, nil
}

// noteUnasked remembers that the network of a subnet could not be asked for other DHCP servers, or that it was.
func noteUnasked(dir string, s inventory.Subnet, isUnasked bool) error {
	all, err := readUnasked(dir)
	if err != nil {
		return err
	}
	// The usual case at a start: nothing to remember and nothing to forget, so nothing is written.
	if _, isListed := all[s.Name]; !isUnasked && !isListed {
		return nil
	}
	delete(all, s.Name)
	if isUnasked {
		all[s.Name] = s.CreatedAt
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	// Written under another name and renamed: after a crash there is the old list or the new one. A lost entry only leaves a subnet in the
	// safer mode.
	path := filepath.Join(dir, unaskedFile)
	if err := renameio.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("note that the network of subnet %s could not be checked for other DHCP servers: %w", s.Name, err)
	}
	return nil
}
