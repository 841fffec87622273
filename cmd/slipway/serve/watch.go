package serve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
)

const (
	watchEvery    = 5 * time.Second
	filesEvery    = time.Minute        // artefacts are looked at
	filesWithin   = 7 * 24 * time.Hour // each is hashed
	storeSlow     = 3 * time.Second    // a store that takes nothing that long is locked
	tightBytes    = 256 << 20          // so little room is an issue
	clockLeap     = time.Minute
	clockToldFor  = time.Hour
	faultsAtMost  = 20 // issues of damaged artefacts; more have one cause
	causeAtMost   = 300
	storeIssueKey = inventory.IssueStore
)

// errLocked is why a store takes nothing.
var errLocked = errors.New("it has taken nothing for seconds: another process may hold a lock on it")

// health is what was found at one look.
type health struct {
	disk       doctor.Disk
	store      error         // why nothing can be stored
	leap       time.Duration // by which the clock was set
	interfaces []doctor.Interface
	only6      map[string]bool    // interfaces that have subnets of IPv6
	unserved   []string           // interfaces without a subnet
	missing6   []inventory.Subnet // of IPv6, in which their interface has no address
	faults     []images.Fault
	files      filesOpen
	reserve    int64 // bytes of the reserve on the disk that were given up; 0: it is there
	shed       provision.Shed
	shedAt     time.Time // when that was more than before; zero: not lately
}

// conditions returns the issues of what was found.
func conditions(h *health) (all []inventory.Issue) {
	if k := doctor.DataDir(h.disk); k.Status == doctor.Failed || k.Status == doctor.Warning && h.disk.FreeBytes < tightBytes {
		i := inventory.Issue{Key: inventory.IssueDisk, Type: inventory.IssueDisk, Severity: inventory.SeverityWarning, Cause: "data directory " + k.Detail, Hint: k.Hint}
		if k.Status == doctor.Failed {
			i.Severity = inventory.SeverityError
		}
		if h.reserve > 0 {
			i.Severity = inventory.SeverityError
			i.Cause += fmt.Sprintf("; the reserve of %d MiB was given up, so that leases are still stored; events are not", h.reserve>>20)
		}
		all = append(all, i)
	}
	if h.store != nil {
		all = append(all, inventory.Issue{
			Key: storeIssueKey, Type: inventory.IssueStore, Severity: inventory.SeverityError,
			Cause: inventory.Clean("the database cannot be written, so no machine is given an address and nothing is recorded: "+h.store.Error(), causeAtMost),
			Hint:  "look at the disk of the data directory (df, dmesg), and whether another program has the database open (fuser slipway.db); it goes on by itself",
		})
	}
	if h.leap != 0 {
		all = append(all, inventory.Issue{
			Key: inventory.IssueClock, Type: inventory.IssueClock, Severity: inventory.SeverityWarning,
			Cause: "the clock was set by " + h.leap.Round(time.Second).String() + ": leases, deadlines and tokens end by the new time",
			Hint:  "timedatectl shows who keeps it; set back, or right for an hour, this closes",
		})
	}
	return slices.Concat(all, shedIssues(h), filesIssues(h.files), interfaceIssues(h), artefactIssues(h.faults))
}

func interfaceIssues(h *health) (all []inventory.Issue) {
	for _, i := range h.interfaces {
		k := doctor.JudgeInterface(i, nil)
		switch {
		case i.Err != nil:
			continue // nothing is known of it
		case !i.IsThere:
			k.Hint = "make it again, or serve others: slipway serve --interface NAME"
		case !i.IsUp:
			k.Detail, k.Hint = "is down", "ip link set "+i.Name+" up"
		case len(i.Prefixes) == 0 && h.only6[i.Name]:
			continue
		case len(i.Prefixes) == 0:
		case slices.Contains(h.unserved, i.Name):
			k.Detail = "has the address " + i.Prefixes[0].String() + ", which is in no subnet"
			k.Hint = "slipway subnet create NAME --cidr " + i.Prefixes[0].Masked().String() + " --interface " + i.Name + " --mode full, then: slipway range add; or give it its old address"
		case !i.HasLink:
		default:
			continue
		}
		severity := inventory.SeverityError
		if k.Status == doctor.Warning {
			severity = inventory.SeverityWarning
		}
		all = append(all, inventory.Issue{
			Key: inventory.IssueInterface + "/" + i.Name, Type: inventory.IssueInterface, Severity: severity,
			Cause: "nobody is answered on interface " + i.Name + ": " + k.Detail, Hint: k.Hint,
		})
	}
	for _, s := range h.missing6 {
		if slices.ContainsFunc(h.interfaces, func(i doctor.Interface) bool { return i.Name == s.Interface && i.IsThere && i.IsUp }) {
			all = append(all, inventory.Issue{
				Key: inventory.IssueInterface + "/" + s.Interface + "/" + s.Name, Type: inventory.IssueInterface, Severity: inventory.SeverityError,
				Cause: "nobody boots over IPv6 on interface " + s.Interface + ": it has no address in " + s.CIDR.String() + ", subnet " + s.Name,
				Hint:  "give it its address back, or one such as this: ip addr add " + netip.PrefixFrom(s.CIDR.Masked().Addr().Next(), s.CIDR.Bits()).String() + " dev " + s.Interface,
			})
		}
	}
	return all
}

func artefactIssues(faults []images.Fault) (all []inventory.Issue) {
	if more := len(faults) - faultsAtMost; more > 0 {
		all = append(all, inventory.Issue{
			Key: inventory.IssueArtefact + "/more", Type: inventory.IssueArtefact, Severity: inventory.SeverityError,
			Cause: fmt.Sprintf("%d more artefacts are missing or damaged: the disk of the artefact folder may be failing", more), Hint: "slipway artefact verify lists all of them",
		})
	}
	for _, f := range faults[:min(len(faults), faultsAtMost)] {
		all = append(all, inventory.Issue{
			Key: inventory.IssueArtefact + "/" + string(f.Digest), Type: inventory.IssueArtefact, Severity: inventory.SeverityError,
			Cause: inventory.Clean(fmt.Sprintf("artefact %s is %s; images that need it: %s", f.Digest, f.Problem, strings.Join(f.Images, ", ")), causeAtMost), Hint: f.Hint,
		})
	}
	return all
}

// clock notices that the clock was set, by a count of time that nobody sets.
type clock struct {
	wall time.Time
	mono time.Duration
	leap time.Duration // in sum
	at   time.Duration // of the last one
}

// look returns by how much the clock is off from how it went before; 0 once that is long ago.
func (c *clock) look(wall time.Time, mono time.Duration) time.Duration {
	wall = wall.Round(0)
	if !c.wall.IsZero() {
		if by := wall.Sub(c.wall) - (mono - c.mono); by.Abs() > clockLeap {
			c.leap, c.at = c.leap+by, mono
		}
	}
	c.wall, c.mono = wall, mono
	if c.leap.Abs() <= clockLeap || mono-c.at >= clockToldFor {
		c.leap = 0
	}
	return c.leap
}

// watchHealth looks at the machine that this server runs on.
func (a *appliance) watchHealth(ctx context.Context) error {
	var c clock
	began := time.Now()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		a.alarms.set(conditions(a.look(ctx, c.look(now, now.Sub(began)))), now, a.log)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look reads what conditions are judged by.
func (a *appliance) look(ctx context.Context, leap time.Duration) *health {
	h := &health{disk: doctor.ReadDisk(a.cfg.DataDir), store: a.alarms.trouble(), leap: leap, only6: map[string]bool{}}
	for _, name := range a.cfg.Interfaces {
		h.interfaces = append(h.interfaces, doctor.ReadInterface(name))
	}
	if six := a.networks.six.Load(); six != nil {
		for _, s := range *six {
			h.only6[s.Interface] = true
			if s.Mode != inventory.ModeOff && slices.Contains(a.cfg.Interfaces, s.Interface) && !slices.ContainsFunc(addresses6Of([]string{s.Interface}), s.CIDR.Contains) {
				h.missing6 = append(h.missing6, s)
			}
		}
	}
	if names, err := a.withoutSubnet(ctx); err == nil {
		h.unserved = names
	}
	h.files = a.gates.look(time.Now())
	isTight := a.reserve.keep(h.disk)
	a.engine.DiskIsTight(isTight)
	h.reserve = a.reserve.givenUp()
	h.shed, h.shedAt = a.alarms.noteShed(a.engine.Shed(), time.Now())
	if faults := a.faults.Load(); faults != nil {
		h.faults = *faults
	}
	return h
}

// keepAlarms stores issues, and finds out whether the store takes anything. It waits for the store as long as that takes;
// meanwhile the others are told that it is stuck.
func (a *appliance) keepAlarms(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		slow := time.AfterFunc(storeSlow, func() { a.alarms.noteStore(errLocked) })
		_ = a.alarms.settle(ctx, a.store, time.Now()) // an issue says why
		slow.Stop()
	}
}

// watchArtefacts looks after the files of images.
func (a *appliance) watchArtefacts(ctx context.Context) error {
	watch := a.cache.Watch()
	tick := time.NewTicker(filesEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		faults, err := watch.Look(ctx, now, now.Add(-filesWithin))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			a.log.Warn("artefacts not checked", "err", err)
		default:
			a.faults.Store(&faults)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
