package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"

	"slipway.dev/slipway/lab/simulate"
)

// dhcpNet is where DHCP is measured; the caller closes it.
func dhcpNet(ctx context.Context) (*simulate.Net, error) {
	n, err := simulate.NewNet("slipway-bench", netip.MustParsePrefix(serverAddress+"/8"))
	if err != nil {
		return nil, err
	}
	if err := run(ctx, "ip", "-n", n.Client, "addr", "add", clientAddress+"/8", "dev", n.ClientIf); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// begin starts a server with an empty store.
func (e *Env) begin(ctx context.Context, n *simulate.Net, s dhcpServer) (*process, error) {
	dir, err := e.freshDir("dhcp")
	if err != nil {
		return nil, err
	}
	argv, environment, err := s.setUp(dir)
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", s.name, err)
	}
	cmd := pinned(ctx, serverCPU, n.Server, argv...)
	cmd.Env = append(os.Environ(), environment...)
	return start(cmd, dir, 67)
}

// byTurns measures a value of Slipway and of a peer some times each, in turns, and returns the medians; one of Slipway
// is 0 when the peer is measured alone.
func (e *Env) byTurns(ctx context.Context, peer dhcpServer, times int, measure func(*simulate.Net, dhcpServer) (float64, error)) (ours, theirs float64, err error) {
	n, err := dhcpNet(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer n.Close()
	if e.Quick {
		times = 1
	}
	servers := []dhcpServer{peer}
	if e.Slipway != "" {
		servers = append(servers, slipwayServer(e.Slipway))
	}
	values := make([][]float64, 2)
	for range times {
		for i, s := range servers {
			v, err := measure(n, s)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: %w", s.name, err)
			}
			values[i] = append(values[i], v)
		}
	}
	if e.Slipway != "" {
		ours = median(values[1])
	}
	return ours, median(values[0]), nil
}

// dhcpCPU compares the processor time of an exchange at a rate that both servers carry.
func dhcpCPU(ctx context.Context, e *Env) (f Figure, err error) {
	const rate, seconds = 8000, 6
	f = Figure{Name: "dhcp-kea-cpu", Unit: "us", PeerName: keaServer.name, IsCost: true}
	f.Ours, f.Peer, err = e.byTurns(ctx, keaServer, 5, func(n *simulate.Net, s dhcpServer) (float64, error) {
		for range slowRunsMax {
			p, err := e.point(ctx, n, s, rate, seconds, true)
			if err != nil {
				return 0, err
			}
			e.say("%s: %s", s.name, p)
			if !p.isClientLimited() && p.lost < 0.01 {
				return p.cpuUS, nil
			}
		}
		return 0, fmt.Errorf("no run of %d at %d/s was clean", slowRunsMax, rate)
	})
	return f, err
}

// latencies are 99th percentiles at a moderate rate.
type latencies struct{ offer, ack float64 }

// dhcpLatency holds a 99th percentile in milliseconds at 2,000 exchanges per second against the promise.
func dhcpLatency(name string, promised float64, pick func(latencies) float64) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f := Figure{Name: name, Unit: "ms", Peer: promised, PeerName: "promised", IsCost: true}
		if e.Slipway == "" {
			return f, skipped("needs Slipway")
		}
		if e.latency == nil {
			var offers, acks []float64
			_, _, err := e.byTurns(ctx, keaServer, 5, func(n *simulate.Net, s dhcpServer) (float64, error) {
				p, err := e.point(ctx, n, s, 2000, 6, true)
				if err != nil {
					return 0, err
				}
				e.say("%s: %s", s.name, p)
				if s.name != keaServer.name {
					offers, acks = append(offers, p.offerMS), append(acks, p.ackMS)
				}
				return p.ackMS, nil
			})
			if err != nil {
				return f, err
			}
			e.latency = &latencies{median(offers), median(acks)}
		}
		f.Ours = pick(*e.latency)
		return f, nil
	}
}

// avalanche compares the seconds until 10,000 clients that start at once all have a lease. Each asks again, later and
// later, until it has one.
func avalanche(ctx context.Context, e *Env) (f Figure, err error) {
	const clients, limit = 10_000, 2 * time.Minute
	f = Figure{Name: "dhcp-10000", Unit: "s", PeerName: keaServer.name, IsCost: true}
	f.Ours, f.Peer, err = e.byTurns(ctx, keaServer, 3, func(n *simulate.Net, s dhcpServer) (float64, error) {
		p, err := e.begin(ctx, n, s)
		if err != nil {
			return 0, err
		}
		defer p.stop()
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		cmd := pinned(ctx, clientCPU, n.Client, "perfdhcp", "-4", "--scenario", "avalanche", "-R", fmt.Sprint(clients), "-l", clientAddress, serverAddress)
		began := time.Now()
		out, err := withClientBuffer(cmd)
		took := time.Since(began)
		if err != nil {
			return 0, fmt.Errorf("%d clients at once: %w: %s", clients, errors.Join(err, ctx.Err()), out[max(0, len(out)-500):])
		}
		e.say("%s: %d clients in %.2f s", s.name, clients, took.Seconds())
		return took.Seconds(), nil
	})
	return f, err
}

// withClientBuffer runs perfdhcp with a larger receive buffer.
func withClientBuffer(cmd *exec.Cmd) (out []byte, err error) {
	err = withReceiveBuffer(clientBuffer, func() error {
		out, err = cmd.CombinedOutput()
		return err
	})
	return out, err
}

// overloaded is what a server does at twice the load that it can carry.
type overloaded struct {
	worst, median float64 // part of its peak
	memory        float64 // MB more than at its peak, at the most
}

// overload measures, again and again, a server's peak and then what is left of it at twice the load.
func (e *Env) overload(ctx context.Context) (o overloaded, err error) {
	n, err := dhcpNet(ctx)
	if err != nil {
		return o, err
	}
	defer n.Close()
	runs, during := 10, 5*time.Second
	if e.Quick {
		runs, during = 3, 3*time.Second
	}
	once := func(s surge) (got surged, memory float64, err error) {
		p, err := e.begin(ctx, n, slipwayServer(e.Slipway))
		if err != nil {
			return got, 0, err
		}
		defer p.stop()
		if got, err = s.run(n.Client); err != nil {
			return got, 0, err
		}
		return got, p.statusMB("VmHWM:"), nil
	}
	var parts []float64
	o.memory = math.Inf(-1)
	for range runs { // the machine is not as fast in one minute as in another
		peak, atPeak, err := once(surge{flight: 2048, during: during})
		if err != nil {
			return o, err
		}
		top := peak.goodput()
		if top == 0 {
			return o, errors.New("no client got an address")
		}
		got, memory, err := once(surge{rate: int(2 * top), during: during})
		if err != nil {
			return o, err
		}
		offered := float64(got.sent) / got.took.Seconds()
		e.say("as many as it can: %.0f/s, %.0f MB; offered %.0f/s: %.0f/s, %.0f MB; %.2f", top, atPeak, offered, got.goodput(), memory, got.goodput()/top)
		if offered < 1.9*top {
			return o, fmt.Errorf("the load fell behind: %.0f/s of %.0f/s", offered, 2*top)
		}
		parts = append(parts, got.goodput()/top)
		o.memory = max(o.memory, memory-atPeak)
	}
	o.worst, o.median = slices.Min(parts), median(parts)
	return o, nil
}

// dhcpOverload holds what is left of the peak at twice the load against the promise.
func dhcpOverload(f Figure, pick func(overloaded) float64) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		if e.Slipway == "" {
			return f, skipped("needs Slipway")
		}
		if e.overloaded == nil {
			o, err := e.overload(ctx)
			if err != nil {
				return f, err
			}
			e.overloaded = &o
		}
		f.Ours = pick(*e.overloaded)
		return f, nil
	}
}
