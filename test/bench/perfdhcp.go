package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// point is one run of perfdhcp at a fixed rate.
type point struct {
	offered int     // exchanges per second asked for
	sent    float64 // DISCOVERs per second that perfdhcp sent
	done    float64 // ACKs per second
	lost    float64 // share of exchanges without an ACK, 0 to 1
	offerMS float64 // 99th percentile, milliseconds; 0 when perfdhcp kept no times
	ackMS   float64
	cpuUS   float64 // of the server per exchange, microseconds
}

// isClientLimited reports whether perfdhcp did not keep its own rate; then the point says nothing about the server.
func (p point) isClientLimited() bool { return p.sent < 0.99*float64(p.offered) }

func (p point) String() string {
	times := ""
	if p.ackMS > 0 {
		times = fmt.Sprintf(", offer p99 %.2f ms, ack p99 %.2f ms", p.offerMS, p.ackMS)
	}
	return fmt.Sprintf("offered %d/s, sent %.0f/s, done %.0f/s, lost %.3f %%%s, %.0f us CPU each", p.offered, p.sent, p.done, 100*p.lost, times, p.cpuUS)
}

// Addresses of the two sides; perfdhcp acts as the relay agent of its clients.
const (
	serverAddress = "10.99.0.1"
	clientAddress = "10.99.255.254"
)

// clientBuffer is perfdhcp's receive buffer. It has no option for one; with the usual 208 KiB it loses answers itself
// above about 10,000 exchanges per second.
const clientBuffer = 4 << 20

// perfdhcp runs a load of full exchanges, each of a new client, for some seconds. To tell when each packet went it keeps all
// of them, 8 kB an exchange: up to a third of its time goes into memory then, and it carries that much less.
func perfdhcp(ctx context.Context, ns string, rate, seconds int, isTimed bool) (point, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds+30)*time.Second)
	defer cancel()
	argv := []string{"perfdhcp", "-4", "-r", strconv.Itoa(rate), "-R", "4000000", "-p", strconv.Itoa(seconds), "-W", "1000000", "-l", clientAddress}
	if isTimed {
		argv = append(argv, "-x", "t")
	}
	cmd := pinned(ctx, clientCPU, ns, append(argv, serverAddress)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := withReceiveBuffer(clientBuffer, func() error {
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start perfdhcp: %w", err)
		}
		time.Sleep(300 * time.Millisecond) // it opens its sockets at once
		return nil
	})
	if err != nil {
		return point{}, err
	}
	// perfdhcp ends with 3 when exchanges were lost; what it printed tells.
	if err := cmd.Wait(); err != nil && ctx.Err() != nil {
		return point{}, fmt.Errorf("perfdhcp at %d/s: %w", rate, ctx.Err())
	} else if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		return point{}, fmt.Errorf("perfdhcp at %d/s: %w", rate, err)
	}
	p, err := parsePerfdhcp(out.Bytes(), seconds)
	if err != nil {
		return point{}, fmt.Errorf("perfdhcp at %d/s: %w", rate, err)
	}
	if isTimed && p.ackMS == 0 {
		return point{}, fmt.Errorf("perfdhcp at %d/s printed no times", rate)
	}
	p.offered = rate
	return p, nil
}

var (
	packetCount = regexp.MustCompile(`^(sent|received) packets: (\d+)`)
	stampPair   = regexp.MustCompile(`^sent / received: (\d+)\.(\d+) / (\d+)\.(\d+)`)
)

// parsePerfdhcp reads what perfdhcp prints in two sections, DISCOVER-OFFER and REQUEST-ACK: statistics, and with -x t the
// times of every exchange.
func parsePerfdhcp(out []byte, seconds int) (point, error) {
	count := map[string][]int{}
	var sections [][]float64 // milliseconds
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if m := packetCount.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[2])
			count[m[1]] = append(count[m[1]], n)
		}
		if strings.HasPrefix(line, "***Timestamps for packets") {
			sections = append(sections, nil)
		}
		if m := stampPair.FindStringSubmatch(line); m != nil && len(sections) > 0 {
			at := len(sections) - 1
			sections[at] = append(sections[at], stamp(m[3], m[4])-stamp(m[1], m[2]))
		}
	}
	sent, received := count["sent"], count["received"]
	if len(sent) < 2 || sent[0] == 0 || len(received) < 2 {
		return point{}, fmt.Errorf("no statistics in its output: %s", out[max(0, len(out)-500):])
	}
	acks := float64(received[1])
	p := point{sent: float64(sent[0]) / float64(seconds), done: acks / float64(seconds), lost: max(0, 1-acks/float64(sent[0]))}
	if len(sections) == 2 {
		for _, l := range sections {
			slices.Sort(l)
		}
		p.offerMS, p.ackMS = percentile(sections[0], .99), percentile(sections[1], .99)
	}
	return p, nil
}

// stamp turns seconds and a fraction into milliseconds.
func stamp(sec, frac string) float64 {
	s, _ := strconv.ParseFloat(sec, 64)
	f, _ := strconv.ParseFloat("0."+frac, 64)
	return s*1000 + f*1000
}

// percentile takes the value at q (0 to 1) of a sorted list; 0 of none.
func percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*q))]
}
