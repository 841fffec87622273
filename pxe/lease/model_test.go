package lease

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
)

// model is what must hold, kept in the simplest way: who was promised which address until when.
type model struct {
	until map[netip.Addr]time.Time
	owner map[netip.Addr]inventory.MAC
	had   map[inventory.MAC]netip.Addr // its latest address
	shut  map[netip.Addr]time.Time     // declined
}

// TestModel drives a book with random machines, faults and restarts. Whatever happens: no address is promised to two
// machines at once, a reserved address goes to its machine only, a quarantined one to nobody, and a machine gets back
// the address it had as long as nobody was given it meanwhile.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rack()
		s.Gateway = netip.Addr{}
		s.Ranges = []inventory.Range{{First: addr("10.0.0.10"), Last: addr("10.0.0.13")}, {First: addr("10.0.0.20"), Last: addr("10.0.0.22")}}
		reserved := map[netip.Addr]inventory.MAC{}
		x := newTable(nil, s)
		x.net.Limits = Limits{KeptPart: 7, OfferFor: 15 * time.Second}
		x.restart()
		m := model{map[netip.Addr]time.Time{}, map[netip.Addr]inventory.MAC{}, map[inventory.MAC]netip.Addr{}, map[netip.Addr]time.Time{}}
		pick := rapid.IntRange(0, 9)
		address := rapid.Custom(func(t *rapid.T) netip.Addr {
			return toAddr(toInt(addr("10.0.0.8")) + uint32(rapid.IntRange(0, 16).Draw(t, "addr")))
		})
		promised := func(c Client, l inventory.Lease) {
			if m.until[l.Address].After(x.now) && m.owner[l.Address] != c.MAC {
				t.Fatalf("%s was promised to %s until %s and is now given to %s", l.Address, m.owner[l.Address], m.until[l.Address], c.MAC)
			}
			if r, ok := reserved[l.Address]; ok && r != c.MAC {
				t.Fatalf("%s is reserved for %s and was given to %s", l.Address, r, c.MAC)
			}
			if m.shut[l.Address].After(x.now) {
				t.Fatalf("%s is in quarantine and was given to %s", l.Address, c.MAC)
			}
			if o := m.owner[l.Address]; o != "" && o != c.MAC && m.had[o] == l.Address {
				delete(m.had, o)
			}
			m.owner[l.Address], m.until[l.Address], m.had[c.MAC] = c.MAC, l.ExpiresAt.Truncate(time.Millisecond), l.Address
			x.now = x.now.Add(time.Millisecond) // so that after a restart the newest of a machine's leases is known
		}
		confirm := func(t *rapid.T, c Client, st State, a netip.Addr) {
			r := x.book.Confirm(c, st, a, x.now)
			if r.Verdict != Ack {
				return
			}
			switch rapid.SampledFrom([]string{"store", "store", "store", "fail", "crash", "declined"}).Draw(t, "fate") {
			case "fail":
				x.book.Abort(r.Lease, x.now)
			case "crash": // stored, but the machine never heard of it
				x.store(r.Lease)
				x.now = x.now.Add(time.Millisecond)
				x.restart()
				if m.owner[r.Lease.Address] == c.MAC {
					m.until[r.Lease.Address] = r.Lease.ExpiresAt.Truncate(time.Millisecond)
				}
				m.had = map[inventory.MAC]netip.Addr{}
			case "declined":
				if l, ok := x.book.Decline(c, r.Lease.Address, x.now); ok {
					x.store(l)
					m.shut[l.Address] = l.ExpiresAt.Truncate(time.Millisecond)
					delete(m.until, l.Address)
					delete(m.had, c.MAC)
				}
				if x.book.Commit(r.Lease) {
					t.Fatalf("%s was committed after it was declined", r.Lease.Address)
				}
			default:
				x.store(r.Lease)
				if x.book.Commit(r.Lease) {
					promised(c, r.Lease)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"discover": func(t *rapid.T) {
				c := client(pick.Draw(t, "client"))
				c.IsBoot, c.IsKnown = rapid.Bool().Draw(t, "boot"), rapid.Bool().Draw(t, "known")
				wanted := address.Draw(t, "wanted")
				o, why := x.book.Offer(c, wanted, x.now)
				if why != "" {
					return
				}
				had, ok := m.had[c.MAC]
				_, isReserved := reserved[o.Address]
				_, isLost := reserved[had] // reserved for somebody since
				isHeld := m.until[had].After(x.now) && m.owner[had] == c.MAC
				isInRange := s.Ranges[0].Contains(had) || s.Ranges[1].Contains(had)
				if ok && isHeld && isInRange && !isLost && !isReserved && had != o.Address {
					t.Fatalf("%s has %s and was offered %s", c.MAC, had, o.Address)
				}
				if rapid.Bool().Draw(t, "takes it") {
					confirm(t, c, Selecting, o.Address)
				}
			},
			"request": func(t *rapid.T) {
				c := client(pick.Draw(t, "client"))
				st := rapid.SampledFrom([]State{Selecting, InitReboot, Renewing, Rebinding}).Draw(t, "state")
				confirm(t, c, st, address.Draw(t, "addr"))
			},
			"release": func(t *rapid.T) {
				c := client(pick.Draw(t, "client"))
				if l, ok := x.book.Release(c, address.Draw(t, "addr"), x.now); ok {
					x.store(l)
					delete(m.until, l.Address)
				}
			},
			"decline": func(t *rapid.T) {
				c := client(pick.Draw(t, "client"))
				if l, ok := x.book.Decline(c, address.Draw(t, "addr"), x.now); ok {
					x.store(l)
					m.shut[l.Address] = l.ExpiresAt.Truncate(time.Millisecond)
					delete(m.until, l.Address)
					delete(m.had, c.MAC)
				}
			},
			"conflict": func(t *rapid.T) {
				c := client(pick.Draw(t, "client"))
				if l, ok := x.book.Conflict(c, address.Draw(t, "addr"), x.now); ok {
					if m.until[l.Address].After(x.now) {
						t.Fatalf("a probe closed %s, which %s has", l.Address, m.owner[l.Address])
					}
					x.store(l)
					m.shut[l.Address] = l.ExpiresAt.Truncate(time.Millisecond)
				}
			},
			"wait": func(t *rapid.T) {
				x.now = x.now.Add(time.Duration(rapid.IntRange(1, 30*3600).Draw(t, "seconds")) * time.Second)
			},
			"wait a little": func(t *rapid.T) { // offers end at times that are finer than those of leases
				coarse := rapid.SampledFrom([]time.Duration{0, 5 * time.Second, 15*time.Second - 2*time.Microsecond}).Draw(t, "time")
				x.now = x.now.Add(coarse + time.Duration(rapid.IntRange(1, 999).Draw(t, "microseconds"))*time.Microsecond)
			},
			"reserve": func(t *rapid.T) {
				a, n := address.Draw(t, "addr"), pick.Draw(t, "client")
				clear(reserved)
				x.net.Reservations = nil
				if rapid.Bool().Draw(t, "any") {
					reserved[a] = macN(n)
					x.net.Reservations = []inventory.Reservation{{Address: a, Subnet: "rack", MAC: macN(n)}}
				}
				x.book.Reconfigure(x.net)
			},
			"restart": func(*rapid.T) {
				x.restart()
			},
			"take over": func(*rapid.T) {
				x.takeOver()
			},
			"": func(t *rapid.T) {
				x.book.check(t)
				for a, until := range m.until {
					if !until.After(x.now) {
						continue
					}
					l, ok := x.book.Find("rack", a)
					if !ok || l.MAC != m.owner[a] || l.State != inventory.LeaseBound || l.ExpiresAt.Before(until) {
						t.Fatalf("%s was promised %s until %s; the book has %+v", m.owner[a], a, until, l)
					}
				}
			},
		})
	})
}
