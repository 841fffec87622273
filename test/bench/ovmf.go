package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/lab/simulate"
)

// Where Debian keeps the firmware and the boot loaders.
const (
	ovmfCode  = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	ovmfVars  = "/usr/share/OVMF/OVMF_VARS_4M.fd"
	loaderDir = "/usr/lib/ipxe"

	signedGRUB = "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"
)

// The network of the guest.
const (
	guestNamespace = "slipway-bench-vm"
	guestNet       = "10.98.0.1/24"
	guestServer    = "10.98.0.1"
	guestMAC       = "52:54:00:aa:00:01"
	bootLimit      = 90 * time.Second
)

// bootFigures is what one run measures: seconds from the first DISCOVER to the request for the boot script.
type bootFigures struct {
	ours, ourGRUB         float64 // as shipped, and with GRUB as the loader of all UEFI machines
	dnsmasq, dnsmasqSmall float64 // with ipxe.efi, as its users set it up, and with the loader that we send
}

// bootBenchmark measures how long one UEFI guest takes from its first DISCOVER to asking for its boot script: OVMF with its
// own PXE driver on an emulated processor. All benchmarks of a run share one measurement.
func bootBenchmark(name, peer string, figure func(b *bootFigures) (ours, peer float64)) Benchmark {
	return Benchmark{Name: name, Programs: []string{"ip", "dnsmasq", "qemu-system-x86_64"}, Run: func(ctx context.Context, e *Env) (f Figure, err error) {
		f = Figure{Name: name, IsCost: true, Unit: "s", PeerName: peer}
		if e.boots == nil {
			if e.boots, err = e.measureBoots(ctx); err != nil {
				return f, err
			}
		}
		f.Ours, f.Peer = figure(e.boots)
		return f, nil
	}}
}

// bootPromised is what a boot with GRUB is to stay below.
const bootPromised = 5.0

func bootBenchmarks() []Benchmark {
	return []Benchmark{
		bootBenchmark("boot-ovmf", "dnsmasq-ipxe.efi", func(b *bootFigures) (float64, float64) { return b.ours, b.dnsmasq }),
		bootBenchmark("boot-ovmf-same-loader", "dnsmasq-snponly.efi", func(b *bootFigures) (float64, float64) { return b.ours, b.dnsmasqSmall }),
		bootBenchmark("boot-ovmf-grub", "promised", func(b *bootFigures) (float64, float64) { return b.ourGRUB, bootPromised }),
	}
}

func (e *Env) measureBoots(ctx context.Context) (*bootFigures, error) {
	repeats := 3
	if e.Quick {
		repeats = 1
	}
	b := &bootFigures{}
	ways := []struct {
		name   string
		server bootServer
		into   *float64
		isPeer bool
	}{
		{"dnsmasq with ipxe.efi", dnsmasqBoot("ipxe.efi"), &b.dnsmasq, true},
		{"dnsmasq with snponly.efi", dnsmasqBoot("snponly.efi"), &b.dnsmasqSmall, true},
		{"slipway", e.slipwayBoot, &b.ours, false},
		{"slipway with GRUB", e.slipwayGRUB, &b.ourGRUB, false},
	}
	took := make([][]float64, len(ways))
	for range repeats { // in turns, so that a busy minute of the machine hits all
		for i, w := range ways {
			if e.Slipway == "" && !w.isPeer {
				continue
			}
			t, err := e.bootGuest(ctx, w.name, w.server)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			took[i] = append(took[i], t.Seconds())
			*w.into = median(took[i])
		}
	}
	return b, nil
}

func median(v []float64) float64 { return percentile(slices.Sorted(slices.Values(v)), .5) }

// bootServer starts what boots the guest and returns how to stop it, and the path whose request is the end.
type bootServer func(ctx context.Context, dir string) (stop func(), script string, err error)

func (e *Env) slipwayBoot(ctx context.Context, dir string) (func(), string, error) {
	cmd := inNamespace(ctx, e.Slipway, "serve", "--interface", "tap0", "--data-dir", filepath.Join(dir, "data"), "--mode", "full")
	p, err := start(cmd, dir, 67)
	if err != nil {
		return nil, "", err
	}
	// The first script only asks iPXE what machine it is; the one that counts is the decision.
	return p.stop, "/script?", nil
}

// slipwayGRUB gives all UEFI machines Debian's GRUB, as for Secure Boot but without the shim: it asks over TFTP.
func (e *Env) slipwayGRUB(ctx context.Context, dir string) (func(), string, error) {
	config := filepath.Join(dir, "config.yaml")
	text := "quirks:\n- {firmware: uefi, loader: grubx64.efi, why: it shows no banner}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, "", fmt.Errorf("write the configuration: %w", err)
	}
	cmd := inNamespace(ctx, e.Slipway, "serve", "--interface", "tap0", "--data-dir", filepath.Join(dir, "data"), "--mode", "full", "--config", config)
	p, err := start(cmd, dir, 67)
	if err != nil {
		return nil, "", err
	}
	return p.stop, "/grub/ask?", nil
}

// dnsmasqBoot is dnsmasq as its users set it up: a loader by TFTP, then a script by HTTP, none of the tricks that spare
// waiting.
func dnsmasqBoot(loader string) bootServer {
	return func(ctx context.Context, dir string) (func(), string, error) {
		return startDnsmasqBoot(ctx, dir, loader)
	}
}

func startDnsmasqBoot(ctx context.Context, dir, loader string) (func(), string, error) {
	script := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "#!ipxe\nexit\n") })
	web := &http.Server{Handler: script, ReadHeaderTimeout: time.Minute}
	var l net.Listener
	err := simulate.InNamespace(guestNamespace, func() (err error) {
		l, err = net.Listen("tcp4", guestServer+":80")
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("serve the script: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	cmd := inNamespace(ctx, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--interface=tap0",
		"--bind-interfaces", "--user=root", "--pid-file=", "--dhcp-authoritative", "--dhcp-range=10.98.0.50,10.98.0.99,1h",
		"--dhcp-leasefile="+filepath.Join(dir, "leases"), "--enable-tftp", "--tftp-root="+loaderDir,
		"--dhcp-match=set:ipxe,175", "--dhcp-boot=tag:!ipxe,"+loader, "--dhcp-boot=tag:ipxe,http://"+guestServer+"/boot.ipxe")
	stopWeb := func() {
		_ = web.Close()
		<-served
	}
	p, err := start(cmd, dir, 67)
	if err != nil {
		stopWeb()
		return nil, "", err
	}
	return func() { p.stop(); stopWeb() }, "/boot.ipxe", nil
}

// bootGuest boots one guest and returns the time from its first DISCOVER to the request for the script.
func (e *Env) bootGuest(ctx context.Context, name string, server bootServer) (_ time.Duration, err error) {
	dir, err := e.freshDir("boot")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	defer func() { err = errors.Join(err, deleteGuestNet()) }()
	if err := makeGuestNet(ctx); err != nil {
		return 0, err
	}
	stop, script, err := server(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer stop()
	w, err := newWatch(script)
	if err != nil {
		return 0, err
	}
	defer w.close()
	guest, err := startGuest(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer guest.stop()
	t, err := w.wait(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w; the server said: %s", err, tailOf(filepath.Join(dir, "output.txt")))
	}
	e.say("%s: %.2f s from DISCOVER to script", name, t.Seconds())
	return t, nil
}

func tailOf(file string) string {
	b, _ := os.ReadFile(file)
	return strings.TrimSpace(string(b[max(0, len(b)-1000):]))
}

// makeGuestNet makes a namespace with a tap interface for QEMU.
func makeGuestNet(ctx context.Context) error {
	for _, c := range [][]string{
		{"netns", "add", guestNamespace},
		{"-n", guestNamespace, "link", "set", "lo", "up"},
		{"-n", guestNamespace, "tuntap", "add", "tap0", "mode", "tap"},
		{"-n", guestNamespace, "addr", "add", guestNet, "dev", "tap0"},
		{"-n", guestNamespace, "link", "set", "tap0", "up"},
	} {
		if err := run(ctx, "ip", c...); err != nil {
			return err
		}
	}
	return nil
}

func deleteGuestNet() error {
	return run(context.Background(), "ip", "netns", "del", guestNamespace)
}

// startGuest starts the machine: OVMF without the option ROM of the network card, so that its own PXE driver boots.
func startGuest(ctx context.Context, dir string) (*process, error) {
	vars, err := os.ReadFile(ovmfVars)
	if err != nil {
		return nil, fmt.Errorf("read the firmware's variables: %w", err)
	}
	varsFile := filepath.Join(dir, "vars.fd")
	if err := os.WriteFile(varsFile, vars, 0o600); err != nil {
		return nil, fmt.Errorf("write the firmware's variables: %w", err)
	}
	guestDir := filepath.Join(dir, "guest")
	if err := os.Mkdir(guestDir, 0o755); err != nil {
		return nil, fmt.Errorf("make %s: %w", guestDir, err)
	}
	cmd := inNamespace(ctx, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-m", "512", "-no-reboot",
		"-display", "none", "-monitor", "none", "-serial", "file:"+filepath.Join(guestDir, "serial.txt"),
		"-drive", "if=pflash,format=raw,readonly=on,file="+ovmfCode, "-drive", "if=pflash,format=raw,file="+varsFile,
		"-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=n0,mac="+guestMAC+",bootindex=1,romfile=")
	return start(cmd, guestDir, 67)
}

// watch notes two moments on the wire of the guest.
type watch struct {
	conn     *packet.Conn
	script   string
	discover time.Time
}

func newWatch(script string) (*watch, error) {
	w := &watch{script: script}
	err := simulate.InNamespace(guestNamespace, func() error {
		iface, err := net.InterfaceByName("tap0")
		if err != nil {
			return err
		}
		w.conn, err = packet.Listen(iface, packet.Raw, unix.ETH_P_ALL, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on the guest's network: %w", err)
	}
	return w, nil
}

func (w *watch) close() { _ = w.conn.Close() }

// wait returns the time between the moments.
func (w *watch) wait(ctx context.Context) (time.Duration, error) {
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	b := make([]byte, 65536)
	for {
		n, _, err := w.conn.ReadFrom(b)
		if err != nil {
			if ctx.Err() != nil {
				return 0, fmt.Errorf("no request for %s within %s (first DISCOVER seen: %t)", w.script, bootLimit, !w.discover.IsZero())
			}
			return 0, fmt.Errorf("watch the guest's network: %w", err)
		}
		now := time.Now()
		switch w.look(b[:n]) {
		case sawDiscover:
			if w.discover.IsZero() {
				w.discover = now
			}
		case sawScript:
			if !w.discover.IsZero() {
				return now.Sub(w.discover), nil
			}
		}
	}
}

type moment int

const (
	sawNothing moment = iota
	sawDiscover
	sawScript
)

// look tells what a frame is: a DHCP request (the first one is the DISCOVER), or a request for the script by HTTP or TFTP.
func (w *watch) look(frame []byte) moment {
	const ethernet = 14
	if len(frame) < ethernet+20 || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_IP {
		return sawNothing
	}
	ip := frame[ethernet:]
	header := int(ip[0]&15) * 4
	if len(ip) < header+20 {
		return sawNothing
	}
	ports, payload := ip[header:], ip[header+20:]
	switch ip[9] {
	case unix.IPPROTO_UDP:
		if binary.BigEndian.Uint16(ports) == 68 && binary.BigEndian.Uint16(ports[2:]) == 67 {
			return sawDiscover
		}
		if binary.BigEndian.Uint16(ports[2:]) == 69 && len(ip) > header+10 && strings.Contains(string(ip[header+8:]), w.script) {
			return sawScript
		}
	case unix.IPPROTO_TCP:
		line, _, _ := strings.Cut(string(payload), "\r\n")
		if strings.Contains(line, "GET ") && strings.Contains(line, w.script) {
			return sawScript
		}
	}
	return sawNothing
}
