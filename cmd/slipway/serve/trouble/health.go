package trouble

import (
	"errors"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/files"
	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/strangers"
)

const (
	WatchEvery    = 5 * time.Second
	freshFor      = 3 * WatchEvery     // what an instance has said holds for so long
	FilesEvery    = time.Minute        // how often artefacts are checked
	FilesWithin   = 7 * 24 * time.Hour // each is hashed
	StoreSlow     = 3 * time.Second    // a store that takes nothing that long is locked
	tightBytes    = 256 << 20          // so little room is an issue
	clockLeap     = time.Minute
	clockToldFor  = time.Hour
	faultsAtMost  = 20 // issues of damaged artefacts; more have one cause
	CauseAtMost   = 300
	storeIssueKey = inventory.IssueStore
)

// machineIssues are the types of issues about the machine that a server runs on. Every instance looks for them on its own machine.
var machineIssues = []string{
	inventory.IssueDisk, inventory.IssueStore, inventory.IssueClock, inventory.IssueInterface, inventory.IssueArtefact,
	inventory.IssueFiles, inventory.IssueDatabase, inventory.IssueLostChanges,
	inventory.IssueCertificate, inventory.IssueLoader, inventory.IssuePort, inventory.IssueClockWrong,
}

// ErrLocked is why a store takes nothing.
var ErrLocked = errors.New("it has taken nothing for seconds: another process may hold a lock on it")

// Health is what was found at one look.
type Health struct {
	Disk       doctor.Disk
	Store      error          // why nothing can be stored
	Database   *storage.State // of the PostgreSQL server; nil: the inventory is in SQLite
	Silent     []instance.Silence
	CutOff     []instance.CutOff
	Leap       time.Duration // by which the clock was set
	Interfaces []doctor.Interface
	Only6      map[string]bool    // interfaces that have subnets of IPv6
	Unserved   []string           // interfaces without a subnet
	Missing6   []inventory.Subnet // of IPv6, in which their interface has no address
	Faults     []images.Fault
	Checks     map[string][]doctor.Check // of the self-check, by the type of the issue about a fault
	Alone      files.Alone
	Files      filesOpen
	Reserve    int64 // bytes of the reserve on the disk that were given up; 0: it is there
	Shed       strangers.Shed
	ShedAt     time.Time // when that was more than before; zero: not lately
}

// Clock notices that the clock was set, by a count of time that nobody sets.
type Clock struct {
	wall time.Time
	mono time.Duration
	leap time.Duration // in sum
	at   time.Duration // of the last one
}

// Look returns by how much the clock is off from how it went before; 0 once that is long ago.
func (c *Clock) Look(wall time.Time, mono time.Duration) time.Duration {
	// Round drops the monotonic reading. Sub would use it, and hide that the clock was set.
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
