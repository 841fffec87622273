package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway.dev/slipway/lab/simulate"
)

// tftpName is a name that Slipway serves; its content is ours.
const (
	tftpName = "ipxe.efi"
	tftpSize = 1 << 20
	tftpPort = 69
	// tftpClients are the addresses of the machines, one each: a server may limit what one of them gets at a time.
	tftpClients = "10.99.128.0/17"
)

// tftpRow is what is measured for a figure.
type tftpRow struct {
	name string
	tftpLoad
	isMedian bool // the median of the clients' times counts, not the rate of all
}

var tftpRows = []tftpRow{
	{"tftp-tftpd-hpa", tftpLoad{clients: 1}, false},
	{"tftp-window-4", tftpLoad{clients: 1, window: 4}, false},
	{"tftp-window-16", tftpLoad{clients: 1, window: 16}, false},
	{"tftp-1000", tftpLoad{clients: 1000}, false},
	{"tftp-loss", tftpLoad{clients: 1, loss: 0.005}, true},
}

// tftpBenchmark measures the bytes per second of a load, or the median time of a transfer, against tftpd-hpa.
func tftpBenchmark(name string) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (f Figure, err error) {
		f = Figure{Name: name, Unit: "MB/s", PeerName: "tftpd-hpa"}
		row := tftpRows[slices.IndexFunc(tftpRows, func(r tftpRow) bool { return r.name == name })]
		if row.isMedian {
			f.Unit, f.IsCost = "s", true
		}
		n, err := simulate.NewNet("slipway-bench", netip.MustParsePrefix(serverAddress+"/8"))
		if err != nil {
			return f, err
		}
		defer n.Close()
		if err := run(ctx, "ip", "-n", n.Client, "addr", "add", clientAddress+"/8", "dev", n.ClientIf); err != nil {
			return f, err
		}
		if err := run(ctx, "ip", "-n", n.Client, "route", "add", "local", tftpClients, "dev", "lo"); err != nil {
			return f, err
		}
		dir, err := e.freshDir("tftp")
		if err != nil {
			return f, err
		}
		files := filepath.Join(dir, "files")
		content := make([]byte, tftpSize)
		_, _ = rand.NewChaCha8([32]byte{3}).Read(content)
		if err := os.Mkdir(files, 0o755); err != nil {
			return f, fmt.Errorf("make %s: %w", files, err)
		}
		if err := os.WriteFile(filepath.Join(files, tftpName), content, 0o644); err != nil {
			return f, fmt.Errorf("write the file: %w", err)
		}
		load := row.tftpLoad
		load.server, load.file, load.size = netip.AddrPortFrom(netip.MustParseAddr(serverAddress), tftpPort), tftpName, tftpSize
		rounds := 4
		if e.Quick {
			rounds = 2
		}
		var ours, peers []float64
		for range rounds { // by turns: what else runs on this machine meets both
			v, err := e.tftpRound(ctx, n, dir, &load, row.isMedian, "in.tftpd", "--foreground", "--secure", "--address", load.server.String(), files)
			if err != nil {
				return f, fmt.Errorf("tftpd-hpa: %w", err)
			}
			peers = append(peers, v)
			if e.Slipway == "" {
				continue
			}
			v, err = e.tftpRound(ctx, n, dir, &load, row.isMedian, e.Slipway, "serve", "--interface", "vs", "--data-dir", filepath.Join(dir, "data"),
				"--mode", "full", "--range", "10.1.0.0-10.1.255.255", "--loaders", files, "--log-level", "warn")
			if err != nil {
				return f, fmt.Errorf("slipway: %w", err)
			}
			ours = append(ours, v)
			e.say("%s: tftpd-hpa %.2f, slipway %.2f %s", name, peers[len(peers)-1], v, f.Unit)
		}
		f.Peer = median(peers)
		if len(ours) > 0 {
			f.Ours = median(ours)
		}
		return f, nil
	}
}

// samples is how often something is measured: n times, or less often in a quick run.
func (e *Env) samples(n int) int {
	if e.Quick {
		return n / 4
	}
	return n
}

// tftpRound starts a server, runs the load for a while, and stops the server.
func (e *Env) tftpRound(ctx context.Context, n *simulate.Net, dir string, load *tftpLoad, isMedian bool, argv ...string) (value float64, err error) {
	p, err := start(pinned(ctx, serverCPU, n.Server, argv...), dir, tftpPort)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	err = onClientCPU(n.Client, func() error {
		var each []float64
		var bytes float64
		began := time.Now()
		for i := 0; i == 0 || load.clients == 1 && time.Since(began) < 3*time.Second || isMedian && i < e.samples(30); i++ {
			took, _, err := load.run()
			if err != nil {
				return err
			}
			for _, t := range took {
				each = append(each, t.Seconds())
				bytes += float64(load.size)
			}
		}
		if value = bytes / 1e6 / time.Since(began).Seconds(); isMedian {
			value = median(each)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%w; the server said: %s", err, p.tail())
	}
	return value, nil
}
