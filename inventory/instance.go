package inventory

import (
	"strings"
	"time"
)

// Instance is a Slipway server with a data directory of its own. Several of them may share one database on PostgreSQL; a file of SQLite has
// one.
type Instance struct {
	ID   string `json:"id"`   // of the data directory: random, made at its first start
	Name string `json:"name"` // what admins call it: a name as CheckName has it, unique
	// Run is the present start of the program: random, "" once it has stopped by itself. A copied data directory shows by a second Run.
	Run       string   `json:"-"`
	Addresses []string `json:"addresses"` // where machines reach it: addresses of IP, without port
	Links     []string `json:"links"`     // where other instances reach it: addresses of IP with a port; none: nobody asks it
	Version   string   `json:"version"`   // of the program
	// HeartbeatN grows with each sign of life. Other instances compare it with what they saw before, by their own clocks.
	HeartbeatN int64     `json:"-"`
	IsDrained  bool      `json:"isDrained"` // an admin wants it to hold no duty
	DrainedAt  time.Time `json:"drainedAt"` // since when; zero if it is not drained, or was drained before a version that notes it
	// CutOff is why the instance with the engine does not answer this one over their link; "" if it does. Machines that boot from this one
	// wait then.
	CutOff    string    `json:"cutOff"`
	CutOffAt  time.Time `json:"cutOffAt"`  // since when; zero if it is not cut off
	StartedAt time.Time `json:"startedAt"` // all times here are by the clock of the database
	SeenAt    time.Time `json:"seenAt"`    // its last sign of life. In a file of SQLite it is that of its start
}

// Duty is work that one instance at a time does. Package provision/duty decides who.
type Duty struct {
	Name   string `json:"name"`   // DutyEngine, or what NetworkDuty returns
	Holder string `json:"holder"` // ID of an instance, "" for nobody
	// Epoch grows by one with each new holder and each start of one, and never falls. Each write of a holder compares it. A holder that has
	// lost the duty without knowing therefore writes nothing.
	Epoch   int64     `json:"epoch"`
	SinceAt time.Time `json:"sinceAt"` // when Holder became what it is, by the clock of the database
	Reason  string    `json:"reason"`  // why it is no longer the one before, for people
	Former  string    `json:"former"`  // the name of the instance that had it before, "" for none; it may be deleted since
}

// DutyEngine drives operations, gives machines their hosts, and runs the controllers of attached clusters.
const DutyEngine = "engine"

const networkDuty = "network/"

// NetworkDuty answers the DHCP requests of a subnet.
func NetworkDuty(subnet string) string { return networkDuty + subnet }

// DutyTerm is how long a duty stays with an instance that shows no sign of life.
func DutyTerm(name string) time.Duration {
	if strings.HasPrefix(name, networkDuty) { // a machine that boots asks again for some seconds, then gives up
		return 3 * time.Second
	}
	return 9 * time.Second
}

// InstanceTx reads and writes instances and their duties. It decides nothing.
type InstanceTx interface {
	// DatabaseTime is the time by the clock that all instances share: that of the server of PostgreSQL, or of this machine for SQLite. Only
	// people may rely on it: that clock may be set at any moment, and another server may take the place of the first.
	DatabaseTime() (time.Time, error)

	FindInstance(id string) (Instance, error)
	FindInstanceByName(name string) (Instance, error)
	ListInstances() ([]Instance, error) // ordered by name
	// SaveInstance creates or overwrites the instance with that ID. A taken name is a Conflict.
	SaveInstance(i Instance) error
	// Heartbeat raises the HeartbeatN of an instance, if it has that Run, and stores now as its SeenAt. The caller has looked, in the same
	// transaction, whether it has.
	Heartbeat(id, run string, now time.Time) error
	DeleteInstance(id string) error // a Conflict while it holds a duty

	FindDuty(name string) (Duty, error)
	ListDuties() ([]Duty, error) // ordered by name
	SaveDuty(d Duty) error       // creates or overwrites; a Holder that is not stored is Invalid
}
