package redfishtest

import "sync"

// Order is a change of power, as hardware knows it.
type Order string

// The orders. Only On starts a machine that is off.
const (
	On       Order = "on"
	Off      Order = "off"      // at once
	Shutdown Order = "shutdown" // asks the operating system
	Cycle    Order = "cycle"    // off and on again
	Reset    Order = "reset"    // stays on
)

// Boot is what the next boot is from; the zero value is the machine's own order.
type Boot struct {
	Target string // Redfish's word: Pxe, UefiHttp, Hdd, Cd, BiosSetup, ...
	Mode   string // UEFI or Legacy
	URI    string // for UefiHttp
}

// Machine is the hardware behind one system. The server calls it one call at a time.
type Machine interface {
	// IsOn reads the power.
	IsOn() (bool, error)
	// Do carries out an order, or begins to.
	Do(o Order) error
	// SetBoot is called before an order that boots the machine with what that boot is from, and after it with what the
	// one after it is from. An override that is only set, and not used yet, is the server's to keep.
	SetBoot(b Boot) error
	// Insert puts an image into the virtual drive, "" for none.
	Insert(url string) error
}

// Memory is a machine that is only remembered. Its fields are set before it is used.
type Memory struct {
	Powered bool
	Lag     int  // looks at the power until an order shows
	Ignores int  // orders that are taken and not carried out; -1 for all
	Deaf    bool // no operating system listens to a shutdown
	Flaps   bool // the power reads differently at every look

	mu     sync.Mutex
	lag    int
	next   *bool
	boots  []Boot
	boot   Boot
	image  string
	orders []Order
}

// IsOn implements Machine.
func (m *Memory) IsOn() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next != nil {
		if m.lag--; m.lag < 0 {
			m.Powered, m.next = *m.next, nil
		}
	}
	if m.Flaps {
		m.Powered = !m.Powered
	}
	return m.Powered, nil
}

// Do implements Machine.
func (m *Memory) Do(o Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders = append(m.orders, o)
	if m.Ignores != 0 {
		if m.Ignores > 0 {
			m.Ignores--
		}
		return nil
	}
	to := m.Powered
	switch o {
	case On, Cycle:
		to = true
		m.boots = append(m.boots, m.boot)
	case Off:
		to = false
	case Shutdown:
		to = m.Powered && m.Deaf
	case Reset:
		if m.Powered {
			m.boots = append(m.boots, m.boot)
		}
	}
	m.next, m.lag = &to, m.Lag
	if m.Lag == 0 {
		m.Powered, m.next = to, nil
	}
	return nil
}

// SetBoot implements Machine.
func (m *Memory) SetBoot(b Boot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot = b
	return nil
}

// Insert implements Machine.
func (m *Memory) Insert(url string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.image = url
	return nil
}

// Boots returns what each boot was from.
func (m *Memory) Boots() []Boot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Boot(nil), m.boots...)
}

// Orders returns the orders that came.
func (m *Memory) Orders() []Order {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Order(nil), m.orders...)
}

// Image returns what is in the virtual drive.
func (m *Memory) Image() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.image
}
