package simulate

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Stage is how far a machine is; they are counted live.
type Stage string

// The stages in the order of a boot; the last five are ends.
const (
	StageOff      Stage = "off"
	StageAddress  Stage = "address" // firmware asks for an address
	StageLoader   Stage = "loader"
	StageIPXE     Stage = "ipxe" // iPXE asks for an address
	StageScript   Stage = "script"
	StageWaiting  Stage = "waiting" // told to wait
	StageFetching Stage = "fetching"
	StageAgent    Stage = "agent"   // our agent runs
	StageWriting  Stage = "writing" // our agent writes an image
	StageSystem   Stage = "system"  // the kernel runs
	StageBooted   Stage = "booted"  // reported up
	StageDisk     Stage = "disk"    // sent to its own disk
	StageSilent   Stage = "silent"  // booted, and made never to report
	StageFailed   Stage = "failed"
)

// Stages lists them in order.
func Stages() []Stage {
	return []Stage{
		StageOff, StageAddress, StageLoader, StageIPXE, StageScript, StageWaiting, StageFetching, StageAgent,
		StageWriting, StageSystem,
		StageBooted, StageDisk, StageSilent, StageFailed,
	}
}

// Act is something that an agent did or a system reported, for tests that follow machines.
type Act struct {
	MAC  string
	What string // inspect, burn-in, wipe, write: begun; "written", "wiped": done; up: its system has reported
	Task string // id of the agent's task; of up the one that wrote the disk
	At   time.Time
}

// Moment is a line in the record of a machine. It is a stage that the machine entered, what went wrong in its boot, or the answer to a
// report.
type Moment struct {
	MAC    string
	At     time.Time
	What   string // "stage system", "report up", "report done of write"
	Task   string // id of the agent's task that a report is about; of up the one that wrote the disk
	Boot   string // id of the boot whose URL a report was sent to
	Server string // host and port of that URL
	Status int    // of the answer in HTTP, 0 without one
	Text   string // what went wrong
}

// IsAcknowledged reports whether a server took a report of the machine. From then on the server must not forget it.
func (m *Moment) IsAcknowledged() bool { return m.Status/100 == 2 }

// String is the line for people.
func (m Moment) String() string {
	line := m.At.Format("15:04:05.000 ") + m.What
	if m.Task != "" {
		line += " (task " + m.Task + ")"
	}
	if m.Server != "" {
		line += " to " + m.Server
	}
	if m.Status != 0 {
		line += fmt.Sprintf(": HTTP %d", m.Status)
	}
	if m.Text != "" {
		line += ": " + m.Text
	}
	return line
}

// Config says what to simulate.
type Config struct {
	Interface   string // what the machines are plugged into
	Namespace   string // network namespace of the interface; "" for the current one
	Hosts       int
	Seed        uint64     // 0 to 255; another seed gives other machines
	Concurrency int        // machines switched on at once; 0 for all
	Firmware    []Firmware // dealt out in turn
	Faults      Faults
	Pace        float64 // 1: the timers of real firmware; 0: as fast as possible
	Expect      Stage   // where every machine should arrive: booted, disk or waiting
	Timeout     time.Duration
	Log         *slog.Logger
	// Power, with an address to listen on, gives the machines controllers. A controller switches its machine, which boots each time
	// that the power comes on. The run then ends with its timeout or context.
	Power PowerConfig
	// RenewEvery is how often machines with controllers that are up renew their leases; 0: never.
	RenewEvery time.Duration
	// Download makes our agent really fetch the images that its tasks name.
	Download bool
	// SecondClient fetches each loader that comes over TFTP once more, with a client that is not ours, and compares.
	SecondClient bool
	// Acted, when set, is called for everything that an agent does; by many goroutines.
	Acted func(Act)
	// Lived, when set, is called for each line in the records of machines; by many goroutines.
	Lived func(Moment)
	// Progress, when set, is called about once a second with the number of machines in each stage.
	Progress func(map[Stage]int)
	// Acknowledged, when set, is called for every lease at the moment its ACK has come; by many goroutines.
	Acknowledged func(Lease)
}

// Check refuses a configuration that cannot work.
func (c *Config) Check() error {
	switch {
	case c.Hosts < 1 || c.Hosts > maxHosts:
		return fmt.Errorf("%d hosts; from 1 to %d are possible", c.Hosts, maxHosts)
	case c.Seed > maxSeed:
		return fmt.Errorf("a seed of %d; from 0 to %d are possible, because it is a byte of each MAC", c.Seed, maxSeed)
	case len(c.Firmware) == 0:
		return errors.New("no firmware named")
	case !(c.Pace >= 0 && c.Pace <= 100):
		return fmt.Errorf("a pace of %g is not between 0 and 100", c.Pace)
	case c.Expect != StageBooted && c.Expect != StageDisk && c.Expect != StageWaiting:
		return fmt.Errorf("machines cannot be expected to end as %q; use booted, disk or waiting", c.Expect)
	case !(c.Power.Faults >= 0 && c.Power.Faults <= 1):
		return fmt.Errorf("controllers that fail with a chance of %g; use 0 to 1", c.Power.Faults)
	case c.Power.Listen != "" && c.Concurrency > 0:
		return errors.New("machines with controllers are all plugged in at once: leave the concurrency out")
	case c.Concurrency < 0:
		return fmt.Errorf("a concurrency of %d is less than nothing", c.Concurrency)
	case c.Timeout <= 0:
		return errors.New("the timeout is not positive")
	}
	return nil
}
