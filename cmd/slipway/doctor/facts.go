// Package doctor owns the checks of the machine that Slipway runs on: interfaces, ports, limits of the kernel, clock, disk,
// database, loaders, certificates. It never changes anything but the few settings of Fix, and knows nothing of hosts.
//
// Start reading at Facts; the judges are pure, and read.go reads what they judge.
package doctor

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/web/wire"
)

// Check is one line: the thing checked, its state, and what to do.
type Check = wire.Check

// The statuses of a check.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "error"
)

// Facts are what is judged, as they were read at one moment.
type Facts struct {
	Now        time.Time
	IsRoot     bool
	Interfaces []Interface // those that are to be served
	Others     []string    // the names of all
	Sysctl     map[string]int
	Disk       Disk
	Database   Database
	HasServer  bool // the inventory is on a database server, and not in that file
	Clock      Clock
	Ports      []Port
	Sockets    []Socket
	ServerPID  int // of the server that uses the data directory; 0: none
}

// Interface is a network interface.
type Interface struct {
	Name         string
	IsThere      bool
	IsUp         bool
	HasLink      bool
	MTU          int
	Prefixes     []netip.Prefix // its IPv4 addresses, without link-local ones
	HasLinkLocal bool           // an IPv6 address that router advertisements are sent from
	Err          error          // why it could not be read; then the other fields are empty
}

// Disk is the file system of the data directory.
type Disk struct {
	Dir        string
	FreeBytes  uint64
	FreeFileN  uint64 // files that can still be made
	FileN      uint64 // files that there can be; 0 where there is no such limit
	IsReadOnly bool
	IsNew      bool // it is not there yet; the rest is that of the folder that it will be made in
	IsFile     bool
	IsForFiles bool   // the inventory is on a database server: leases need no room here
	OpenKey    string // the key of the secrets, where others can read it: such a server does not start
	Err        error
}

// Database is the database file.
type Database struct {
	Path    string
	IsThere bool
	Err     error // why it cannot be written
	// WrittenAt is when it was written last.
	WrittenAt time.Time
	LockedBy  int    // the process that has kept it from being written for seconds, other than the server; 0: none
	Locker    string // its program
}

// Clock is what the kernel says of the clock.
type Clock struct {
	IsKnown  bool
	IsSynced bool // an NTP client keeps it
}

// Port is one that the server needs.
type Port struct {
	Proto      string // udp, tcp
	Number     int
	For        string     // what it serves: DHCP
	Address    netip.Addr // invalid: all
	Interfaces []string   // where sockets are bound to interfaces; else on all
}

// Socket is one that is open on this machine.
type Socket struct {
	Proto     string
	Address   netip.Addr
	Number    int
	Interface string // to which it is bound, or ""
	PID       int    // 0: not known
	Program   string
}
