package trouble

import (
	"context"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/files"
	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// Machine is the machine that this server runs on.
type Machine struct {
	Instance   string // the name of this one; "" if there can be no other
	DataDir    string
	Interfaces []string
	DB         *sqlstore.Store // of which the state is asked
	Database   *storage.Watch
	Networks   *lookup.Networks
	// Unserved returns the interfaces that have no subnet.
	Unserved func(context.Context) ([]string, error)
	Files    *files.Watch
	Gates    *Gates
	Alarms   *Alarms
	Clock    *instance.Clock
	// Checks are lines of the self-check whose faults are issues, too, by their type.
	Checks map[string]func() []doctor.Check
}

// Look reads what conditions of the machine are judged by. Leap is by how much the clock was set.
func (m *Machine) Look(ctx context.Context, leap time.Duration) *Health {
	if m.Alarms.Trouble() != nil { // is it PostgreSQL?
		m.Database.Look(ctx, m.DB)
	}
	found := &Health{
		Disk: doctor.ReadDisk(m.DataDir), Store: m.Alarms.Trouble(), Database: m.Database.State(time.Now()), Leap: leap,
		Only6: map[string]bool{}, Files: m.Gates.Look(time.Now()), Faults: m.Files.Faults(),
		Checks: map[string][]doctor.Check{},
	}
	if d := found.Database; d != nil && d.Err == nil && !d.At.IsZero() && offBy(&d.Health) == 0 {
		m.Clock.Agreed(d.At)
	}
	for kind, checks := range m.Checks {
		found.Checks[kind] = checks()
	}
	found.Disk.IsForFiles = found.Database != nil
	for _, name := range m.Interfaces {
		found.Interfaces = append(found.Interfaces, doctor.ReadInterface(name))
	}
	// nil until the networks were read for the first time.
	if six := m.Networks.Six.Load(); six != nil {
		for _, s := range *six {
			found.Only6[s.Interface] = true
			if s.Mode != inventory.ModeOff && slices.Contains(m.Interfaces, s.Interface) &&
				!slices.ContainsFunc(lookup.Addresses6Of([]string{s.Interface}), s.CIDR.Contains) {
				found.Missing6 = append(found.Missing6, s)
			}
		}
	}
	// A store that cannot be read has an issue of its own.
	if names, err := m.Unserved(ctx); err == nil {
		found.Unserved = names
	}
	return found
}

// Named says of issues about a machine which instance runs there. Without a name, there is only one.
func Named(all []inventory.Issue, instance string) []inventory.Issue {
	if instance == "" {
		return all
	}
	for n := range all {
		if i := &all[n]; i.Instance == "" && slices.Contains(machineIssues, i.Type) {
			i.Instance, i.Key = instance, i.Key+"@"+instance
			i.Cause = inventory.Clean("instance "+instance+": "+i.Cause, CauseAtMost)
		}
	}
	return all
}
