package simulate

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Fault is a way in which machines or cables misbehave.
type Fault string

// The faults. Those of packets happen to each packet with their probability, the others to each boot.
const (
	FaultDrop        Fault = "drop"         // packets get lost, both ways
	FaultDuplicate   Fault = "duplicate"    // packets arrive twice
	FaultMalformed   Fault = "malformed"    // a broken packet goes before the good one
	FaultTFTPAbort   Fault = "tftp-abort"   // power fails while the loader comes over TFTP
	FaultHTTPAbort   Fault = "http-abort"   // power fails while a file comes over HTTP
	FaultWrongOrder  Fault = "wrong-order"  // a REQUEST for an address that nobody offered comes first
	FaultReboot      Fault = "reboot"       // power fails at a random step
	FaultSlow        Fault = "slow"         // the machine reads slowly
	FaultNeverReport Fault = "never-report" // the booted system never reports
	FaultSameXID     Fault = "same-xid"     // every boot uses the same transaction id, as OVMF with Debian's iPXE does
)

// usualChance is the probability of a fault that is named without one.
const usualChance = 0.1

// AllFaults lists the faults.
func AllFaults() []Fault {
	return []Fault{
		FaultDrop, FaultDuplicate, FaultMalformed, FaultTFTPAbort, FaultHTTPAbort, FaultWrongOrder, FaultReboot,
		FaultSlow, FaultNeverReport, FaultSameXID,
	}
}

// Faults says how likely each fault is, from 0 to 1.
type Faults map[Fault]float64

// parseFaults reads words such as drop=0.05 or reboot.
func parseFaults(words []string) (Faults, error) {
	out := Faults{}
	for _, word := range words {
		name, chance, hasChance := strings.Cut(word, "=")
		if !slices.Contains(AllFaults(), Fault(name)) {
			return nil, fmt.Errorf("%q is no fault; there are %s", name, faultNames())
		}
		p := usualChance
		if hasChance {
			var err error
			if p, err = strconv.ParseFloat(chance, 64); err != nil || !(p >= 0 && p <= 1) {
				return nil, fmt.Errorf("fault %s: %q is not a probability from 0 to 1", name, chance)
			}
		}
		out[Fault(name)] = p
	}
	return out, nil
}

func faultNames() string {
	var names []string
	for _, f := range AllFaults() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// dice are one machine's luck; the same seed and index throw the same.
type dice struct {
	faults Faults
	rand   *rand.Rand
}

func newDice(f Faults, seed uint64, index int) *dice {
	return &dice{faults: maps.Clone(f), rand: rand.New(rand.NewPCG(seed, uint64(index)))}
}

func (d *dice) happens(f Fault) bool {
	p := d.faults[f]
	return p > 0 && d.rand.Float64() < p
}

// mangle breaks a packet in one of the ways that servers have met.
func (d *dice) mangle(b []byte) []byte {
	b = slices.Clone(b)
	switch d.rand.IntN(7) {
	case 0:
		return b[:d.rand.IntN(len(b))] // cut off
	case 1:
		b[2] = byte(d.rand.IntN(256)) // hardware address length
	case 2:
		b[0] = 2 // says that it is a reply
	case 3:
		b[fixedLength] ^= 0xff // no cookie
	case 4:
		b[fixedLength+4+1] = 250 // the first option runs past the end
	case 5:
		for i, c := range b {
			if i > fixedLength+4 && c == 255 {
				b[i] = 0 // options without an end
			}
		}
	default:
		for i := fixedLength + 4; i < len(b); i++ {
			b[i] = byte(d.rand.IntN(256))
		}
	}
	return b
}

// errPowerLost ends a boot by a fault: it counts as no failure of the server.
var errPowerLost = errors.New("power lost on purpose")
