package burn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// portCounters are counters of Linux that a healthy link leaves alone. Dropped frames are not among them: a switch sends
// much that nobody here listens to.
var portCounters = []string{"rx_errors", "tx_errors", "rx_crc_errors", "rx_frame_errors", "rx_length_errors", "tx_carrier_errors", "tx_fifo_errors", "collisions"}

// portEvery is how often the test reads a link; carrier_changes counts what happens in between.
const portEvery = time.Second

// port watches one port under the load of the others: its link stays, at its speed, and its error counters do not rise.
func (s *Source) port(ctx context.Context, p inventory.Port) inventory.BurnInTest {
	before := s.counters(p.Name)
	ticker := time.NewTicker(portEvery)
	defer ticker.Stop()
	lost := 0
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			if s.counter(p.Name, "carrier") != 1 {
				lost++
			}
		}
	}
	return compare(before, s.counters(p.Name), lost)
}

// compare says what became of a port, by its counters and how often it had no link when the test read it.
func compare(before, after map[string]int64, lost int) inventory.BurnInTest {
	var faults []string
	if changes := after["carrier_changes"] - before["carrier_changes"]; changes > 0 || lost > 0 {
		faults = append(faults, fmt.Sprintf("the link went away (%d changes)", max(changes, int64(lost))))
	}
	for _, name := range portCounters {
		if n := after[name] - before[name]; n > 0 {
			faults = append(faults, fmt.Sprintf("%s grew by %d", name, n))
		}
	}
	if was, is := before["speed"], after["speed"]; was > 0 && is != was {
		faults = append(faults, fmt.Sprintf("its speed went from %d to %d Mbit/s", was, is))
	}
	if faults != nil {
		return inventory.BurnInTest{Detail: strings.Join(faults, ", ")}
	}
	moved := after["rx_bytes"] - before["rx_bytes"] + after["tx_bytes"] - before["tx_bytes"]
	return inventory.BurnInTest{Passed: true, Detail: fmt.Sprintf("the link stayed, no errors, %d bytes moved", moved)}
}

// counters reads all that is compared.
func (s *Source) counters(port string) map[string]int64 {
	m := map[string]int64{"carrier_changes": s.counter(port, "carrier_changes"), "speed": s.counter(port, "speed")}
	for _, name := range append([]string{"rx_bytes", "tx_bytes"}, portCounters...) {
		m[name] = s.counter(port, "statistics/"+name)
	}
	return m
}

// counter reads one number below a port in sysfs; 0 when there is none.
func (s *Source) counter(port, name string) int64 {
	text, err := os.ReadFile(filepath.Join(s.Root, "sys/class/net", port, name))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // 0 when it is no number
	return n
}
