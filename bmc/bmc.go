// Package bmc owns power from outside the machine: the contract of drivers, the confirmation of a change of power, and the
// table of vendors' quirks. It never speaks a protocol: each driver is a package below it.
//
// Start reading at Driver, then Converge: an order counts only when the BMC confirms the result.
package bmc

import (
	"context"
	"errors"
	"io"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Target is everything a driver needs to reach one machine's controller.
type Target struct {
	inventory.BMC
	Password string
	// HostMACs are the ports of the machine itself, which Wake-on-LAN needs.
	HostMACs []inventory.MAC
	HostName string
	Egress   *egress.Policy // which addresses may be connected to; nil: all
}

// Action is a change of power.
type Action string

// The actions.
const (
	On       Action = "on"
	Off      Action = "off"      // at once, as by pulling the plug
	Shutdown Action = "shutdown" // by asking the operating system
	Cycle    Action = "cycle"    // off, then on
	Reset    Action = "reset"    // without power-off; an off machine stays off
)

// Device is where a machine boots from.
type Device string

// The devices.
const (
	None    Device = "none" // no override: the machine's own boot order
	PXE     Device = "pxe"
	HTTP    Device = "http" // UEFI HTTP Boot, from Boot.URI if set
	Disk    Device = "disk"
	Virtual Device = "virtual-media"
	Setup   Device = "setup" // the firmware's setup screen
)

// Boot is an override of the boot order, for the next boot unless IsPersistent.
type Boot struct {
	Device       Device
	URI          string             // for HTTP, where the controller knows to set it
	Mode         inventory.Firmware // BIOS or UEFI; "" keeps what is set
	IsPersistent bool
}

// Driver controls the power of one machine. Each method is one attempt, ends with ctx, and is safe to repeat. It fails with
// an *inventory.Error. Unavailable may pass (unreachable, busy, 5xx), and Unauthorized is about credentials. Invalid is
// what the controller will never do. NotFound means that the machine is not behind it. Hint says what to do. Messages never
// hold passwords. A reading of many parts returns what can be read, and says by Omit what it left out.
type Driver interface {
	// Power reads the power state.
	Power(ctx context.Context) (inventory.PowerState, error)
	// SetPower starts a change; Converge finds out whether it happens. On succeeds for a machine that is on, and Off
	// for one that is off.
	SetPower(ctx context.Context, a Action) error
	// Close ends sessions; the driver is not used after that.
	Close() error
}

// Booter sets the device of the next boot.
type Booter interface {
	SetBoot(ctx context.Context, b Boot) error
	// Boot reads the override that is in force.
	Boot(ctx context.Context) (Boot, error)
}

// MediaMounter puts an image into a virtual drive.
type MediaMounter interface {
	InsertMedia(ctx context.Context, url string) error
	EjectMedia(ctx context.Context) error
	// Media returns the URL that is inserted, "" for none.
	Media(ctx context.Context) (string, error)
}

// Locator lights the identify LED.
type Locator interface {
	Locate(ctx context.Context, on bool) error
}

// Sensor is one reading.
type Sensor struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"` // temperature, fan, voltage, power, ...
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Status string  `json:"status"` // ok, warning, critical, absent
}

// SensorReader reads sensors and the health that the controller sums up: ok, warning, critical or "".
type SensorReader interface {
	Sensors(ctx context.Context) ([]Sensor, error)
	Health(ctx context.Context) (string, error)
}

// LogEntry is one line of the controller's event log.
type LogEntry struct {
	ID       string `json:"id"`
	At       string `json:"at"` // RFC 3339 by the controller's clock, "" when it has none
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// LogReader reads the controller's event log, newest first, at most limit entries.
type LogReader interface {
	Log(ctx context.Context, limit int) ([]LogEntry, error)
	ClearLog(ctx context.Context) error
}

// Inventory is what a controller reports about the machine, without a boot.
type Inventory struct {
	Hardware inventory.Hardware
	Vendor   string // of the controller
	Model    string
	Firmware string // of the controller
}

// InventoryReader reads the inventory out of band.
type InventoryReader interface {
	Inventory(ctx context.Context) (Inventory, error)
}

// User is an account of the controller.
type User struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Role    string `json:"role"` // administrator, operator, user, none; unknown when the controller does not tell
	Enabled bool   `json:"enabled"`
}

// UserManager manages the controller's accounts.
type UserManager interface {
	Users(ctx context.Context) ([]User, error)
	// CheckCredentials fails with Unauthorized when the target's user and password do not let in an administrator.
	CheckCredentials(ctx context.Context) error
	// SetPassword gives an existing account a new password, and checks that it works. When it is the target's own account, the
	// caller uses the new one from then on.
	SetPassword(ctx context.Context, user, password string) error
	// CreateUser adds an administrator.
	CreateUser(ctx context.Context, user, password string) error
	DeleteUser(ctx context.Context, user string) error
}

// ControllerResetter restarts the controller itself. The machine continues to run. The controller does not answer for some
// minutes.
type ControllerResetter interface {
	ResetController(ctx context.Context) error
}

// Asker asks its controller for its features. Without it, the features are those of the protocol.
type Asker interface {
	// Can returns capabilities as inventory.BMC.Capabilities names them. If the controller does not report a feature, it
	// counts as present.
	Can(ctx context.Context) ([]string, error)
}

// Console opens the serial console; closing it ends the session. The controller may end another session.
type Console interface {
	Console(ctx context.Context) (io.ReadWriteCloser, error)
}

// Opener makes a driver for a target. It does not connect: the first call does.
type Opener func(t Target) (Driver, error)

// Capabilities returns what a driver can do, as inventory.BMC.Capabilities names it.
func Capabilities(d Driver) []string {
	names := []string{"power"}
	for name, ok := range map[string]bool{
		"boot": is[Booter](d), "media": is[MediaMounter](d), "locate": is[Locator](d), "sensors": is[SensorReader](d),
		"log": is[LogReader](d), "inventory": is[InventoryReader](d), "users": is[UserManager](d), "console": is[Console](d),
		"reset": is[ControllerResetter](d),
	} {
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names
}

// Can asks a controller what it can do; a driver that cannot ask answers for its protocol.
func Can(ctx context.Context, d Driver) ([]string, error) {
	asker, ok := d.(Asker)
	if !ok {
		return Capabilities(d), nil
	}
	names, err := asker.Can(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return append([]string{"power"}, slices.DeleteFunc(names, func(n string) bool { return n == "power" })...), nil
}

func is[T any](d Driver) bool { _, ok := d.(T); return ok }

// KindOf returns the kind of a driver's error; Internal for one that is no *inventory.Error.
func KindOf(err error) inventory.Kind {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return e.Kind
	}
	return inventory.Internal
}
