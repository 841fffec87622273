package lookup

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/pxe/admission"
)

// Own remembers which addresses machines boot from. It reads them again every second, because an interface may get its
// address later, or another one. All goroutines of TFTP and HTTP ask it.
type Own struct {
	Interfaces []string
	mu         sync.Mutex
	at         time.Time
	addrs      map[netip.Addr]string // interface by address
}

// Find returns the interface that has one of our boot addresses, "" for an address that is not.
func (o *Own) Find(a netip.Addr) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The lock is held while the addresses are read: a burst of requests then reads them once. Netlink answers in microseconds.
	if now := time.Now(); now.Sub(o.at) > time.Second {
		o.at, o.addrs = now, map[netip.Addr]string{}
		for _, name := range o.Interfaces {
			for _, addr := range slices.Concat(AddressesOf([]string{name}), Addresses6Of([]string{name})) {
				o.addrs[addr] = name
			}
		}
	}
	return o.addrs[a]
}

// Serves reports whether machines boot from an address of ours.
func (o *Own) Serves(a netip.Addr) bool { return o.Find(a) != "" }

// Admission returns the rules for downloads through the link with that address of ours. How many machines share it depends on
// its speed, where the kernel knows one.
func (o *Own) Admission(a netip.Addr) admission.Rules {
	// Megabits a second; -1 or an error for virtual interfaces and those without link. The defaults of admission hold then.
	text, err := os.ReadFile(filepath.Join("/sys/class/net", o.Find(a), "speed"))
	megabits, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || megabits <= 0 {
		return admission.Rules{}
	}
	// The kernel says megabits, and admission counts bytes.
	return admission.Rules{BytesPerSecond: megabits * 1_000_000 / 8}
}
